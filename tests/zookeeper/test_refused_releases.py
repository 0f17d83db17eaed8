"""A release that the server refuses is no release: the session would keep the node, and so the lock."""

from __future__ import annotations

import pytest

from holdfast._core.flow import Call, Flow, Now
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.ops import NO_AUTH, NO_NODE, Failure, acl
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.tombstones import Tombstones
from holdfast.backends.zookeeper.tree import Tree
from holdfast.errors import BackendUnavailable, Misconfigured
from holdfast.model import Claim, LockSpec

THROTTLED = -127


class Link:
    lasts, proved = 10.0, 100.0

    def unheard(self, now: float) -> float:
        return 0.0

    def wake(self, owner: str) -> None:
        pass  # nobody waits

    def keep(self, state: ClaimState) -> None: ...


def answered(flow: Flow[bool], code: int) -> bool:
    """What a release comes to if every request is refused with this code."""
    op = flow.send(None)
    try:
        while True:
            assert isinstance(op, (Now, Call))
            op = flow.send(101.0 if isinstance(op, Now) else [Failure(code)])
    except StopIteration as stop:
        return bool(stop.value)


def release(states: dict[str, ClaimState], code: int, will: bool) -> bool:
    claim = Claim(LockSpec("n", ttl=10.0, lock_delay=1.0 if will else 0.0), "me", "actor")
    states["me"] = ClaimState(
        claim, "/h/n", 110.0, tried=True, link=Link(), session=5, node="mine", token=7, granted=100.0, will=will
    )
    return answered(ReleaseFlows(states, Tombstones(Tree("/h", acl()), 5.0), 5.0).release(claim), code)


@pytest.mark.parametrize("will", [False, True])
@pytest.mark.parametrize(("code", "error"), [(THROTTLED, BackendUnavailable), (NO_AUTH, Misconfigured)])
def test_it_is_told_and_can_be_tried_again(code: int, error: type[Exception], will: bool) -> None:
    states: dict[str, ClaimState] = {}
    with pytest.raises(error, match="releasing 'n'"):
        release(states, code, will)
    assert not states["me"].gone


@pytest.mark.parametrize("will", [False, True])
def test_what_was_not_there_is_released(will: bool) -> None:
    states: dict[str, ClaimState] = {}
    assert not release(states, NO_NODE, will)
    assert not states
