"""A slot whose making was not answered, by hand: it is looked for and deleted with its claim."""

from __future__ import annotations

import pytest

from holdfast._core.flow import NOW, Call
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.claim_tracker import ClaimTracker
from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.ops import Delete, List, Multi, Op, acl
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.requests import Batch
from holdfast.backends.zookeeper.tombstones import Tombstones
from holdfast.backends.zookeeper.tree import Tree
from holdfast.model import Claim, LockSpec

SLOT = "~seat.me.1.3.0000000004"
PARENT = Stat(1, 1, 7000, 7000, 0, 0, 0, 0, 0, 2, 5)


class Link:
    lasts, proved = 10.0, 100.0

    def unheard(self, now: float) -> float:
        return 0.0

    def wake(self, owner: str) -> None:
        pass  # nobody waits

    def keep(self, state: ClaimState) -> None: ...


@pytest.fixture
def state() -> ClaimState:
    """Of a claim that waits, and tried to take a slot."""
    spec = LockSpec("pool", weight=1, capacity=3, fair=False)
    state = ClaimState(
        Claim(spec, "me", "actor"), "/h/pool", 110.0, tried=True, link=Link(), session=5, slot_tried=True
    )
    state.node = "me.5.1.3.u__lock__0000000003"
    return state


def deleted(op: Op) -> list[str]:
    ops = op.ops if isinstance(op, Multi) else [op]
    return [each.path for each in ops if isinstance(each, Delete)]


def test_a_release_looks_for_it(state: ClaimState) -> None:
    tombstones = Tombstones(Tree("/h", acl()), 5.0)
    flow = ReleaseFlows({"me": state}, tombstones, 5.0).release(state.claim)
    op = flow.send(None)
    assert isinstance(op, Call)
    assert isinstance(op.request, Batch)
    assert [type(each) for each in op.request.ops] == [List]
    assert flow.send([([state.node, SLOT], PARENT)]) is NOW
    op = flow.send(101.0)
    assert isinstance(op, Call)
    assert isinstance(op.request, Batch)
    assert deleted(op.request.ops[0]) == [f"/h/pool/{SLOT}", state.path]


def test_so_does_whoever_deletes_a_claim_that_is_over(state: ClaimState) -> None:
    tracker = ClaimTracker(acl())
    tracker.add(state, 100.0)
    tracker.due(101.0)
    [(_, ops)] = tracker.due(111.0)
    assert [type(each) for each in ops] == [List]
    tracker.done(state, ops, [([state.node, SLOT], PARENT)])
    [(_, ops)] = tracker.due(112.0)
    assert deleted(ops[0]) == [f"/h/pool/{SLOT}", state.path]
