"""A process that was stopped comes back on a session that the leader may be about to end: no promise goes beyond it.

A follower answers by itself, and passes on only now and then whom it has heard. So what is said after a silence, and
even what is made then, can vanish with the session a moment later.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.flow import Call, Now
from holdfast.backends.zookeeper.acquire import AcquireFlows
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.ops import Created, acl
from holdfast.backends.zookeeper.paths import prefix_of
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.requests import Batch, Enter
from holdfast.backends.zookeeper.tombstones import Tombstones
from holdfast.backends.zookeeper.tree import Tree
from holdfast.backends.zookeeper.watch_registry import Proof
from holdfast.model import Claim, Grant, LockSpec, Queued

TTL, LEAST = 1.0, 0.4
STAT = Stat(5, 1, 7000, 7000, 0, 0, 0, 5, 0, 0, 5)
ASK = LockSpec("x", ttl=TTL)


class SilentLink:
    """A session that says its first word after a while."""

    lasts = TTL

    def __init__(self, began: float) -> None:
        self._proof = Proof(began, TTL, LEAST)

    @property
    def proved(self) -> float:
        return self._proof.at

    def unheard(self, now: float) -> float:
        return self._proof.unheard(now)

    def wake(self, owner: str) -> None:
        pass  # nobody waits

    def keep(self, state: ClaimState) -> None:
        pass  # nobody looks into the tracker here

    def hear(self, sent: float) -> None:
        self._proof.note(sent)


def take(now: float, silence: float, ahead: bool) -> Any:
    """What a take says that is sent now, after a silence; somebody stands ahead, or nobody."""
    tree, states = Tree("/h", acl()), dict[str, ClaimState]()
    tree.guess.is_new = False
    tombstones = Tombstones(tree, 5.0)
    taking = AcquireFlows(tree, states, ReleaseFlows(states, tombstones, 5.0), tombstones, lambda claim: b"{}", 5.0)
    link = SilentLink(now - silence)
    other, mine = (f"{prefix_of(owner, 5, ASK)}000000000{number}" for number, owner in ((1, "other"), (2, "me")))
    flow = taking.take(Claim(ASK, "me", "actor"), True)
    answer: Any = None
    try:
        while True:
            op = flow.send(answer)
            if isinstance(op, Now):
                answer = now
                continue
            assert isinstance(op, Call)
            assert isinstance(op.request, Batch)
            ops = op.request.ops
            if enter := next((each for each in ops if isinstance(each, Enter)), None):
                state = enter.state
                state.link, state.session, state.node, state.token = link, 5, mine, 5
                link.hear(now)
                line = [other, mine] if ahead else [mine]
                answer = [None] * (len(ops) - 2) + [Created(state.path, STAT), (line, STAT)]
            else:
                answer = [True] * len(ops)
    except StopIteration as stop:
        return stop.value


@pytest.mark.parametrize(("silence", "kept"), [(0.1, TTL), (0.6, 0.4), (1.4, 0.0)])
def test_a_place_in_the_line_is_promised_for_as_long_as_the_session_lasts_for_certain(
    silence: float, kept: float
) -> None:
    queued = take(100.0, silence, ahead=True)
    assert isinstance(queued, Queued)
    assert queued.patience == pytest.approx(kept)


@pytest.mark.parametrize(("silence", "good"), [(0.1, TTL), (0.6, 0.4), (1.4, -0.4)])
def test_so_is_a_hold(silence: float, good: float) -> None:
    grant = take(100.0, silence, ahead=False)
    assert isinstance(grant, Grant)
    assert grant.ttl == pytest.approx(good)


def test_what_is_said_soon_after_the_silence_is_in_doubt_like_the_first_word() -> None:
    proof = Proof(0.0, TTL, LEAST)
    proof.note(1.0)
    assert proof.unheard(1.0) == 1.0
    proof.note(1.1)
    assert proof.unheard(1.15) == pytest.approx(1.15), "the leader may still know nothing since the beginning"
    assert proof.unheard(1.21) == 0.0, "by now it has been told"


def test_a_second_silence_counts_from_what_the_leader_was_told_for_certain() -> None:
    proof = Proof(0.0, TTL, LEAST)
    proof.note(1.0)
    proof.note(1.16)  # unusually late, and so soon that the word before may not have arrived
    assert proof.unheard(1.16) == pytest.approx(1.16)
    proof.note(2.0)
    assert proof.unheard(2.0) == pytest.approx(0.84)
