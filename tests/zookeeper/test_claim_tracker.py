"""The book and the flows around it, by hand: what is due, and that an expiry and a look that cross do not both win."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.flow import Call, Now
from holdfast.backends.zookeeper.acquire import AcquireFlows
from holdfast.backends.zookeeper.claim_tracker import CONFIRM_AFTER_S, TRY_AGAIN_S, ClaimTracker
from holdfast.backends.zookeeper.jute import Stat
from holdfast.backends.zookeeper.ops import NO_NODE, Created, Delete, Failure, Multi, Op, Read, Write, acl
from holdfast.backends.zookeeper.paths import prefix_of
from holdfast.backends.zookeeper.places import Place
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
        self.kept: list[Place] = []

    def unheard(self, now: float) -> float:
        return 0.0

    def keep(self, place: Place) -> None:
        self.kept.append(place)


def place_of(until: float = 30.0, granted: float = 1.0, **options: Any) -> Place:
    claim = Claim(LockSpec("x", **options), "me", "actor")
    node = f"{prefix_of('me', 5, claim.spec)}0000000001"
    return Place(claim, "/h/x", until, True, FakeLink(), 5, node, 5, 7000, 1.0, granted, about=b"{}", entered=1.0)


def ops_of(book: ClaimTracker, now: float) -> list[Op]:
    return [op for _, ops in book.due(now) for op in ops]


def test_a_hold_that_lasts_is_confirmed_once() -> None:
    book, place = ClaimTracker(acl()), place_of()
    book.add(place, 1.0)
    assert book.due(1.0) == []
    [(found, ops)] = book.due(1.0 + CONFIRM_AFTER_S + 0.01)
    assert found is place
    assert [type(op) for op in ops] == [Write, Read]
    assert b'"since":7000' in ops[0].data  # type: ignore[attr-defined]
    book.done(place, ops, [STAT, (b"{}", STAT)])
    assert place.confirmed
    assert book.due(2.0) == []


def test_one_that_was_released_is_forgotten() -> None:
    book, place = ClaimTracker(acl()), place_of()
    book.add(place, 1.0)
    place.gone = "released"
    assert book.due(100.0) == []
    assert book.next == float("inf")


def test_one_that_did_not_come_through_is_tried_again() -> None:
    book, place = ClaimTracker(acl()), place_of()
    book.add(place, 1.0)
    work = book.due(1.1)
    book.failed(work, 1.1)
    assert [type(op) for op in ops_of(book, 1.2)] == [Write, Read]


def test_a_place_that_is_over_is_deleted_until_it_is_gone() -> None:
    book, place = ClaimTracker(acl()), place_of(until=3.0)
    place.confirmed = True
    book.add(place, 1.0)
    assert ops_of(book, 1.1) == []
    assert ops_of(book, 2.9) == []
    place.until = 4.0  # renewed
    assert ops_of(book, 3.5) == []
    [(_, ops)] = book.due(4.1)
    assert ops == [Delete(place.path)]
    assert place.gone == "expired"
    assert ops_of(book, 4.1 + TRY_AGAIN_S / 2) == []
    [(_, ops)] = book.due(4.2 + TRY_AGAIN_S)  # the first was not answered
    book.done(place, ops, [Failure(NO_NODE)])
    assert place.buried
    assert ops_of(book, 10.0) == []


def test_a_place_whose_flow_never_came_back_is_deleted_too() -> None:
    """Struck between the entrance and the look at the line, and struck again while it was rolled back."""
    book, place = ClaimTracker(acl()), place_of(until=3.0, granted=0.0)
    book.add(place, 1.0)
    now = 1.0
    while not (found := book.due(now)):
        now += 0.05
        assert now < 4.0
    assert found == [(place, [Delete(place.path)])]
    assert now >= 3.0


def test_with_a_will_the_end_leaves_a_ghost() -> None:
    book, place = ClaimTracker(acl()), place_of(until=3.0, lock_delay=2.0)
    place.confirmed = place.will = True
    book.add(place, 1.0)
    book.due(1.1)
    [(_, [multi, _])] = book.due(3.1)
    assert isinstance(multi, Multi)
    assert [getattr(op, "path", "")[:9] for op in multi.ops] == ["/h/x/~gho", "/h/x/~wil", "/h/x/me.5"]


def test_a_renewal_that_comes_in_the_very_moment_wins() -> None:
    """The wire says "gone" first, and looks at the time once more."""
    book = ClaimTracker(acl())

    class Crossing(Place):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "gone" and value == "expired":
                super().__setattr__("until", 50.0)  # the flow, between the two steps of the wire

    place = Crossing(Claim(LockSpec("x"), "me", "actor"), "/h/x", 3.0, granted=1.0, confirmed=True, node="n")
    book.add(place, 1.0)
    book.due(1.1)
    assert book.due(3.1) == []
    assert place.gone == ""


def test_the_end_of_a_node_may_be_told_before_its_confirmation_is_noted() -> None:
    """Another thread reads it: it is not lost, and the hold does not go on for ever."""
    book, place = ClaimTracker(acl()), place_of()
    book.add(place, 1.0)
    [(_, ops)] = book.due(1.0 + CONFIRM_AFTER_S + 0.01)
    book.event(True, place.path)
    book.done(place, ops, [STAT, (b"{}", STAT)])
    assert place.gone == "evicted"
    assert not book.own

    book, place = ClaimTracker(acl()), place_of()
    book.add(place, 1.0)
    [(_, ops)] = book.due(1.0 + CONFIRM_AFTER_S + 0.01)
    book.event(False, place.path)  # somebody asks it to give way
    book.done(place, ops, [STAT, (b"{}", STAT)])
    [(_, ops)] = book.due(2.0)
    assert ops == [Read(place.path, watch=True)]
    book.event(True, place.path)
    book.done(place, ops, [(b"{}", STAT)])
    assert place.gone == "evicted"


def test_what_happens_to_our_own_node_is_told() -> None:
    book, place = ClaimTracker(acl()), place_of()
    book.add(place, 1.0)
    [(_, ops)] = book.due(1.1)
    book.done(place, ops, [STAT, (b"{}", STAT)])
    book.event(False, place.path)
    [(_, ops)] = book.due(0.0)
    assert ops == [Read(place.path, watch=True)]
    book.done(place, ops, [(b'{"asked":true}', STAT)])
    assert place.asked
    book.event(True, place.path)
    assert place.gone == "evicted"


def test_the_end_of_the_session_is_the_end_of_all() -> None:
    book, one, other = ClaimTracker(acl()), place_of(), place_of()
    book.add(one, 1.0)
    book.due(1.1)
    book.add(other, 1.1)
    book.end()
    assert (one.gone, other.gone) == ("session", "session")


def test_it_rests_only_where_renewals_keep_it() -> None:
    for options, rests in (({}, True), ({"renew": False}, False), ({"max_hold": 9.0}, False)):
        book, place = ClaimTracker(acl()), place_of(until=30.0, **options)
        place.confirmed = True
        book.add(place, 1.0)
        assert not book.settled(1.0)
        book.due(1.1)
        assert book.settled(2.0) is rests
        assert not book.settled(20.0), "it was not renewed for long"
    assert not ClaimTracker(acl()).settled(1.0), "a session without anything on it has to be kept alive"


@pytest.mark.parametrize("lapsed", [False, True])
def test_a_place_that_lapsed_while_it_was_looked_at_is_not_granted(lapsed: bool) -> None:
    """It enters again, at the end; its old node is being deleted."""
    tree, places = Tree("/h", acl()), dict[str, Place]()
    traces = Tombstones(tree, 5.0)
    taking = AcquireFlows(tree, places, ReleaseFlows(places, traces, 5.0), traces, lambda claim: b"{}", 5.0)
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
            place = enter.place
            place.link, place.session = FakeLink(), 5
            place.node, place.token = f"{prefix_of('me', 5, claim.spec)}{entered:010d}", entered
            if lapsed and entered == 1:
                place.gone = "expired"  # by the wire, in this very moment
            children = [place.node] if entered == 1 else [f"{prefix_of('me', 5, claim.spec)}0000000001", place.node][1:]
            answer = [None] * (len(op.request.ops) - 2) + [Created(place.path, STAT), (children, STAT)]
    except StopIteration as stop:
        grant = stop.value
    assert isinstance(grant, Grant)
    assert entered == grant.token == (2 if lapsed else 1)


def test_a_node_that_has_lapsed_is_not_adopted_for_a_lost_one() -> None:
    """Same owner, same session: but it is the one that our own wire is deleting."""
    places = dict[str, Place]()
    leaving = ReleaseFlows(places, Tombstones(Tree("/h", acl()), 5.0), 5.0)
    claim = Claim(LockSpec("x"), "me", "actor")
    old, new = (f"{prefix_of('me', 5, claim.spec)}{number:010d}" for number in (1, 2))
    for children, found in (([old], ""), ([old, new], new)):
        place = Place(claim, "/h/x", 9.0, True, FakeLink(), 5, former=frozenset({old}))
        flow = leaving.find(place, children, 5.0)
        answer: Any = None
        try:
            while True:
                op = flow.send(answer)
                answer = 1.0 if isinstance(op, Now) else [STAT]
        except StopIteration:
            pass  # the end of the flow
        assert place.node == found
