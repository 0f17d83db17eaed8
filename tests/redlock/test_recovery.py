"""When a node without memory may vote again, with clocks that lie: the flows, driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast._core.flow import Call, Now, Random
from holdfast.backends.redlock.fanout import EVERYBODY, Fanout, Tally
from holdfast.backends.redlock.keys import Keys
from holdfast.backends.redlock.recovery import Health, NodeRecovery
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.redlock.quorums import quorum

RUN, NONCE, FOUNDING = "a" * 40, "b" * 16, "c" * 16
HOUR = 3600.0


class Nodes:
    """Three nodes that say what they are told to say, and a monotonic clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.remember = [True, True, False]
        self.calendar = 1_700_000_000.0
        self.since = self.calendar
        self.nonce = NONCE
        self.asked: list[str] = []

    def mend(self, mender: NodeRecovery) -> Health:
        flow = mender.mend()
        answer: Any = None
        try:
            while True:
                op = flow.send(answer)
                if isinstance(op, Now):
                    answer = self.now
                elif isinstance(op, Random):
                    answer = 0.5
                else:
                    assert isinstance(op, Call)
                    assert isinstance(op.request, Fanout)
                    answer = self._tally(op.request)
        except StopIteration as stop:
            health: Health = stop.value
            return health

    def _tally(self, request: Fanout) -> Tally:
        self.asked.append(request.verb)
        tally = Tally(EVERYBODY, 3, 3, 2)
        for node in range(3):
            if request.only in (None, node):
                tally.add(node, self._say(request.verb, node))
        return tally

    def _say(self, verb: str, node: int) -> bytes | int:
        clock = f"{int(self.calendar * 1e6):016d}"
        if verb == "survey":
            return b'["0", "00000000000000000007", 0]'
        if verb == "become":
            return 1
        if self.remember[node]:
            return f"{clock}+{7:020d}{1_000_000:016d}{RUN}{FOUNDING}".encode()
        return f"{clock}S{RUN}{int(self.since * 1e6):016d}{self.nonce}".encode()


def test_a_calendar_that_jumps_ahead_seeds_nobody() -> None:
    nodes, mender = Nodes(), NodeRecovery(3, Keys("q"), 60.0)
    assert nodes.mend(mender).wait > 60
    nodes.calendar += HOUR
    nodes.now += 1
    assert 60 < nodes.mend(mender).wait < 63
    assert "become" not in nodes.asked
    nodes.now += 63
    nodes.mend(mender)
    assert "become" in nodes.asked


def test_nor_does_a_client_that_saw_an_earlier_emptiness() -> None:
    """It restarted once more meanwhile: what was promised since is forgotten, too."""
    nodes, mender = Nodes(), NodeRecovery(3, Keys("q"), 60.0)
    nodes.mend(mender)
    nodes.now += HOUR
    nodes.calendar += HOUR
    nodes.nonce = "d" * 16  # and its calendar was set back, so that it seems to be empty for long
    assert nodes.mend(mender).wait > 60
    assert "become" not in nodes.asked


def test_a_calendar_that_goes_back_only_waits_longer() -> None:
    nodes, mender = Nodes(), NodeRecovery(3, Keys("q"), 60.0)
    nodes.mend(mender)
    nodes.now += HOUR
    nodes.calendar -= 10
    assert nodes.mend(mender).wait > 60
    assert "become" not in nodes.asked


def test_nodes_that_all_forgot_wait_if_they_are_told_to() -> None:
    nodes, mender = Nodes(), NodeRecovery(3, Keys("q"), 60.0, found_after=60.0)
    nodes.remember = [False] * 3
    assert nodes.mend(mender).wait == 60
    nodes.calendar += HOUR
    nodes.now += 59
    assert nodes.mend(mender).wait == pytest.approx(1)
    assert "become" not in nodes.asked
    nodes.now += 2
    assert nodes.mend(mender).remember == 3


def test_real_nodes_that_wait_say_for_how_long() -> None:
    with quorum(3) as servers, holdfast.connect(servers.url(found_after=300)) as locks:
        with pytest.raises(BackendUnavailable, match="without memory, to be seeded in"):
            locks.lock("a").try_acquire()
        assert "+" not in servers.memories()


def test_a_wait_that_is_none_is_refused() -> None:
    with pytest.raises(Misconfigured, match="found_after"):
        holdfast.connect("redlock://a,b,c?found_after=soon")
