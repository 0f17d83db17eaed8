"""The tracker and the flows around it, by hand: what is due, and that of an expiry and a look only one wins."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.flow import Call, Now
from holdfast.backends.zookeeper.acquire import AcquireFlows
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.claim_tracker import CONFIRM_AFTER_S, TRY_AGAIN_S, ClaimTracker
from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.ops import NO_NODE, Created, Delete, Failure, Multi, Op, Read, Write, acl
from holdfast.backends.zookeeper.paths import prefix_of
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.requests import Batch, Enter
from holdfast.backends.zookeeper.tombstones import Tombstones
from holdfast.backends.zookeeper.tree import Tree
from holdfast.model import Claim, Grant, LockSpec

STAT = Stat(5, 1, 7000, 7000, 0, 0, 0, 5, 0, 0, 5)


class FakeLink:
    lasts = 30.0
    proved = 0.0

    def __init__(self) -> None:
        self.kept: list[ClaimState] = []

    def unheard(self, now: float) -> float:
        return 0.0

    def wake(self, owner: str) -> None:
        pass  # nobody waits

    def keep(self, state: ClaimState) -> None:
        self.kept.append(state)


def state_of(until: float = 30.0, granted: float = 1.0, **options: Any) -> ClaimState:
    claim = Claim(LockSpec("x", **options), "me", "actor")
    node = f"{prefix_of('me', 5, claim.spec)}0000000001"
    return ClaimState(claim, "/h/x", until, True, FakeLink(), 5, node, 5, 7000, 1.0, granted, about=b"{}", entered=1.0)


def ops_of(tracker: ClaimTracker, now: float) -> list[Op]:
    return [op for _, ops in tracker.due(now) for op in ops]


def test_a_hold_that_lasts_is_confirmed_once() -> None:
    tracker, state = ClaimTracker(acl()), state_of()
    tracker.add(state, 1.0)
    assert tracker.due(1.0) == []
    [(found, ops)] = tracker.due(1.0 + CONFIRM_AFTER_S + 0.01)
    assert found is state
    assert [type(op) for op in ops] == [Write, Read]
    assert b'"since":7000' in ops[0].data  # type: ignore[attr-defined]
    tracker.done(state, ops, [STAT, (b"{}", STAT)])
    assert state.confirmed
    assert tracker.due(2.0) == []


def test_one_that_was_released_is_forgotten() -> None:
    tracker, state = ClaimTracker(acl()), state_of()
    tracker.add(state, 1.0)
    state.gone = "released"
    assert tracker.due(100.0) == []
    assert tracker.next == float("inf")


def test_one_that_did_not_come_through_is_tried_again() -> None:
    tracker, state = ClaimTracker(acl()), state_of()
    tracker.add(state, 1.0)
    work = tracker.due(1.1)
    tracker.failed(work, 1.1)
    assert [type(op) for op in ops_of(tracker, 1.2)] == [Write, Read]


def test_a_place_that_is_over_is_deleted_until_it_is_gone() -> None:
    tracker, state = ClaimTracker(acl()), state_of(until=3.0)
    state.confirmed = True
    tracker.add(state, 1.0)
    assert ops_of(tracker, 1.1) == []
    assert ops_of(tracker, 2.9) == []
    state.until = 4.0  # renewed
    assert ops_of(tracker, 3.5) == []
    [(_, ops)] = tracker.due(4.1)
    assert ops[-1] == Delete(state.path)  # by itself, should the other be refused
    assert isinstance(ops[0], Multi)
    assert [getattr(op, "path", "") for op in ops[0].ops] == [state.end_note_path, state.path]  # it is remembered
    assert state.gone == "expired"
    assert ops_of(tracker, 4.1 + TRY_AGAIN_S / 2) == []
    [(_, ops)] = tracker.due(4.2 + TRY_AGAIN_S)  # the first was not answered
    tracker.done(state, ops, [Failure(NO_NODE)] * len(ops))
    assert state.buried
    assert ops_of(tracker, 10.0) == []


def test_a_place_whose_flow_never_came_back_is_deleted_too() -> None:
    """Struck between the entrance and the look at the line, and struck again while it was rolled back."""
    tracker, state = ClaimTracker(acl()), state_of(until=3.0, granted=0.0)
    tracker.add(state, 1.0)
    now = 1.0
    while not (found := tracker.due(now)):
        now += 0.05
        assert now < 4.0
    assert found == [(state, [Delete(state.path)])]
    assert now >= 3.0


def test_with_a_will_the_end_leaves_a_ghost() -> None:
    tracker, state = ClaimTracker(acl()), state_of(until=3.0, lock_delay=2.0)
    state.confirmed = state.will = True
    tracker.add(state, 1.0)
    tracker.due(1.1)
    [(_, [multi, _])] = tracker.due(3.1)
    assert isinstance(multi, Multi)
    assert [getattr(op, "path", "")[:9] for op in multi.ops] == ["/h/x/~las", "/h/x/~gho", "/h/x/~wil", "/h/x/me.5"]


def test_a_renewal_that_comes_in_the_very_moment_wins() -> None:
    """The wire says "gone" first, and looks at the time once more."""
    tracker = ClaimTracker(acl())

    class Crossing(ClaimState):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "gone" and value == "expired":
                super().__setattr__("until", 50.0)  # the flow, between the two steps of the wire

    state = Crossing(Claim(LockSpec("x"), "me", "actor"), "/h/x", 3.0, granted=1.0, confirmed=True, node="n")
    tracker.add(state, 1.0)
    tracker.due(1.1)
    assert tracker.due(3.1) == []
    assert state.gone == ""


def test_the_end_of_a_node_may_be_told_before_its_confirmation_is_noted() -> None:
    """Another thread reads it: it is not lost, and the hold does not go on for ever."""
    tracker, state = ClaimTracker(acl()), state_of()
    tracker.add(state, 1.0)
    [(_, ops)] = tracker.due(1.0 + CONFIRM_AFTER_S + 0.01)
    tracker.event(True, state.path)
    tracker.done(state, ops, [STAT, (b"{}", STAT)])
    assert state.gone == "evicted"
    assert not tracker.own

    tracker, state = ClaimTracker(acl()), state_of()
    tracker.add(state, 1.0)
    [(_, ops)] = tracker.due(1.0 + CONFIRM_AFTER_S + 0.01)
    tracker.event(False, state.path)  # somebody asks it to give way
    tracker.done(state, ops, [STAT, (b"{}", STAT)])
    [(_, ops)] = tracker.due(2.0)
    assert ops == [Read(state.path, watch=True)]
    tracker.event(True, state.path)
    tracker.done(state, ops, [(b"{}", STAT)])
    assert state.gone == "evicted"


def test_what_happens_to_our_own_node_is_told() -> None:
    tracker, state = ClaimTracker(acl()), state_of()
    tracker.add(state, 1.0)
    [(_, ops)] = tracker.due(1.1)
    tracker.done(state, ops, [STAT, (b"{}", STAT)])
    tracker.event(False, state.path)
    [(_, ops)] = tracker.due(0.0)
    assert ops == [Read(state.path, watch=True)]
    tracker.done(state, ops, [(b'{"asked":true}', STAT)])
    assert state.asked
    tracker.event(True, state.path)
    assert state.gone == "evicted"


def test_the_end_of_the_session_is_the_end_of_all() -> None:
    tracker, one, other = ClaimTracker(acl()), state_of(), state_of()
    tracker.add(one, 1.0)
    tracker.due(1.1)
    tracker.add(other, 1.1)
    tracker.end()
    assert (one.gone, other.gone) == ("session", "session")


def test_it_rests_only_where_renewals_keep_it() -> None:
    for options, rests in (({}, True), ({"renew": False}, False), ({"max_hold": 9.0}, False)):
        tracker, state = ClaimTracker(acl()), state_of(until=30.0, **options)
        state.confirmed = True
        tracker.add(state, 1.0)
        assert not tracker.settled(1.0)
        tracker.due(1.1)
        assert tracker.settled(2.0) is rests
        assert not tracker.settled(20.0), "it was not renewed for long"
    assert not ClaimTracker(acl()).settled(1.0), "a session without anything on it has to be kept alive"


@pytest.mark.parametrize("lapsed", [False, True])
def test_a_place_that_lapsed_while_it_was_looked_at_is_not_granted(lapsed: bool) -> None:
    """It enters again, at the end; its old node is being deleted."""
    tree, states = Tree("/h", acl()), dict[str, ClaimState]()
    tree.guess.is_new = False
    tombstones = Tombstones(tree, 5.0)
    taking = AcquireFlows(tree, states, ReleaseFlows(states, tombstones, 5.0), tombstones, lambda claim: b"{}", 5.0)
    claim = Claim(LockSpec("x"), "me", "actor")
    flow = taking.take(claim, True)
    entered = 0
    answer: Any = None
    try:
        while True:
            op = flow.send(answer)
            if isinstance(op, Now):
                answer = 1.0
                continue
            assert isinstance(op, Call)
            assert isinstance(op.request, Batch)
            enter = next(each for each in op.request.ops if isinstance(each, Enter))
            entered += 1
            state = enter.state
            state.link, state.session = FakeLink(), 5
            state.node, state.token = f"{prefix_of('me', 5, claim.spec)}{entered:010d}", entered
            if lapsed and entered == 1:
                state.gone = "expired"  # by the wire, in this very moment
            children = [state.node] if entered == 1 else [f"{prefix_of('me', 5, claim.spec)}0000000001", state.node][1:]
            answer = [None] * (len(op.request.ops) - 2) + [Created(state.path, STAT), (children, STAT)]
    except StopIteration as stop:
        grant = stop.value
    assert isinstance(grant, Grant)
    assert entered == grant.token == (2 if lapsed else 1)


def test_a_node_that_has_lapsed_is_not_adopted_for_a_lost_one() -> None:
    """Same owner, same session: but it is the one that our own wire is deleting."""
    states = dict[str, ClaimState]()
    leaving = ReleaseFlows(states, Tombstones(Tree("/h", acl()), 5.0), 5.0)
    claim = Claim(LockSpec("x"), "me", "actor")
    old, new = (f"{prefix_of('me', 5, claim.spec)}{number:010d}" for number in (1, 2))
    for children, found in (([old], ""), ([old, new], new)):
        state = ClaimState(claim, "/h/x", 9.0, True, FakeLink(), 5, former=frozenset({old}))
        flow = leaving.find(state, children, 5.0)
        answer: Any = None
        try:
            while True:
                op = flow.send(answer)
                answer = 1.0 if isinstance(op, Now) else [STAT]
        except StopIteration:
            pass  # the end of the flow
        assert state.node == found
