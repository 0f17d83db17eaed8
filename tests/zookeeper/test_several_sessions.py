"""Holds with several ttls have several sessions: the server of one may hang, and the others are renewed."""

from __future__ import annotations

import pytest

from holdfast._core.flow import Call, Now
from holdfast.backends.zookeeper.backend import ZooKeeperBackend
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.ops import acl
from holdfast.backends.zookeeper.requests import Batch
from holdfast.backends.zookeeper.tree import Tree
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from holdfast.model import Claim, Extension, LockSpec

REQUEST_TIMEOUT = 5.0


class Link:
    """The session of one ttl."""

    def __init__(self, ttl: float) -> None:
        self.lasts, self.proved = ttl, 0.0

    def unheard(self, now: float) -> float:
        return 0.0

    def wake(self, owner: str) -> None:
        pass  # nobody waits

    def keep(self, state: ClaimState) -> None: ...


def held(backend: ZooKeeperBackend, ttl: float) -> Claim:
    claim = Claim(LockSpec(f"n{ttl}", ttl=ttl), f"o{ttl}", "a", 7)
    state = ClaimState(claim, "/x", until=ttl, tried=True, link=Link(ttl), node="n", token=7, confirmed=True)
    backend._states[claim.owner] = state
    return claim


def renewed(hanging: set[float], ttls: list[float]) -> tuple[list[object], list[float]]:
    """What comes of a renewal of holds with these ttls while these sessions hang; and how long each may wait."""
    backend = ZooKeeperBackend(Tree.of("", "x", acl()), "c", 0.1, REQUEST_TIMEOUT, "h", lambda: 1)
    flow = backend.renew([held(backend, ttl) for ttl in ttls])
    timeouts = []
    try:
        op = flow.send(None)
        while True:
            if isinstance(op, Now):
                op = flow.send(0.0)
                continue
            assert isinstance(op, Call)
            timeouts.append(op.timeout)
            assert isinstance(op.request, Batch)
            assert op.request.link is not None
            ttl = op.request.link.lasts
            op = flow.throw(OutcomeUnknown("no answer")) if ttl in hanging else flow.send([True])
    except StopIteration as stop:
        return stop.value, timeouts


def test_one_hangs_and_the_others_are_renewed() -> None:
    replies, timeouts = renewed({3.0}, [12.0, 3.0, 6.0])
    assert [type(reply) for reply in replies] == [Extension, type(None), Extension]
    assert timeouts == [1.0, 2.0, 4.0]


def test_all_hang() -> None:
    with pytest.raises(BackendUnavailable, match="no answer"):
        renewed({3.0, 6.0}, [6.0, 3.0])
