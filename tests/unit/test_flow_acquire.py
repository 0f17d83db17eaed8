"""Acquire, step by step: what is sent, when it gives up, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast._core.acquire import acquire
from holdfast._core.flow import NOW, Call, Flow, Shield, Sleep, Wait
from holdfast._core.lease import Hold, drift
from holdfast.backends.queue_backend import Push, Release, Take, Taken
from holdfast.errors import BackendUnavailable, Misconfigured, NotAcquired, OutcomeUnknown
from holdfast.model import Claim, Grant, LockSpec, Promises, Queued
from holdfast.observe.event import Event
from holdfast.recipes.multi import obtain_all
from tests.unit.hand import Hand, coordination


class Cancelled(BaseException):
    """Whatever strikes a flow from outside."""


def begin(timeout: float | None = None, *, ttl: float = 10.0, **options: object) -> Hand:
    return Hand(coordination().obtain(LockSpec("a", ttl=ttl, **options), timeout, "actor"))  # type: ignore[arg-type]


def taken(token: int = 0, look_again: float = 0.0, ahead: int = 0) -> list[Taken]:
    return [Taken(token, look_again, ahead)]


def see_withdrawal(hand: Hand) -> None:
    """The shielded release, answered; then the flow has ended."""
    assert isinstance(hand.op, Shield)
    inner = Hand(hand.op.flow, hand.now)
    assert isinstance(inner.request, Release)
    inner.answer(False)
    assert inner.done
    hand.answer(None)
    assert hand.done


def test_a_free_name_is_one_request() -> None:
    hand = begin()
    assert isinstance(hand.request, Take)
    assert hand.request.queue
    hand.answer(taken(7))
    assert isinstance(hand.result, Hold)
    assert hand.result.token == 7


def test_validity_counts_from_the_send_not_from_the_reply() -> None:
    hand = begin(ttl=10)
    hand.answer(taken(7), after=3.0)
    assert hand.result.valid_until == pytest.approx(100.0 + 10.0 - drift(10.0))
    assert hand.result.deadline < hand.result.valid_until


def test_one_try_leaves_nothing_and_sends_nothing_more() -> None:
    hand = begin(0)
    assert not hand.request.queue
    hand.answer(taken(0))
    assert hand.done
    assert isinstance(hand.error, NotAcquired)
    assert hand.error.waited == 0


def test_a_push_grants_for_as_long_as_the_place_was_kept() -> None:
    hand = begin(ttl=60)
    hand.answer(taken(0, look_again=3.0, ahead=1))
    assert isinstance(hand.op, Wait)
    assert hand.op.timeout == 3.0
    hand.answer(Push(9), after=2.0)
    assert hand.result.token == 9
    assert hand.result.valid_until == pytest.approx(100.0 + 10.0 - drift(10.0))


def test_a_push_that_was_long_under_way_is_looked_into() -> None:
    hand = begin(ttl=60)
    hand.answer(taken(0, look_again=3.0))
    hand.answer(Push(9), after=11.0)
    assert isinstance(hand.request, Take)


def test_no_push_and_it_looks_again_as_the_same_owner() -> None:
    hand = begin()
    owner = hand.request.claims[0].owner
    hand.answer(taken(0, look_again=3.0))
    hand.answer(None, after=3.0)
    assert hand.request.claims[0].owner == owner
    hand.answer(taken(8))
    assert hand.result.token == 8


def test_the_timeout_counts_once_however_often_it_wakes() -> None:
    hand = begin(10.0)
    waits = []
    hand.answer(taken(0, look_again=3.0, ahead=2))
    while hand.stands_at(Wait):
        waits.append(hand.op.timeout)
        hand.answer(None, after=hand.op.timeout)
        if hand.stands_at(Call):
            hand.answer(taken(0, look_again=3.0, ahead=2))
    assert waits == [3.0, 3.0, 3.0, pytest.approx(1.0)]
    see_withdrawal(hand)
    assert isinstance(hand.error, NotAcquired)
    assert hand.error.waited == pytest.approx(10.0)
    assert hand.error.ahead == 2


def test_a_request_is_not_given_longer_than_the_timeout() -> None:
    assert begin(0.7).op.timeout == pytest.approx(0.7)
    assert begin(None).op.timeout == 5.0
    assert begin(60.0).op.timeout == 5.0


def test_a_fault_that_passes_is_tried_again_as_the_same_owner() -> None:
    hand = begin()
    owner = hand.request.claims[0].owner
    hand.throw(OutcomeUnknown("no reply"))
    assert isinstance(hand.op, Sleep)
    hand.answer(None, after=hand.op.seconds)
    assert hand.request.claims[0].owner == owner
    hand.answer(taken(7))
    assert hand.result.token == 7


@pytest.mark.parametrize("timeout", [None, 3.0])
def test_a_fault_that_stays_is_borne_for_a_ttl_or_the_timeout(timeout: float | None) -> None:
    hand = begin(timeout, ttl=10)
    pauses = []
    while not hand.done:
        if isinstance(hand.op, Sleep):
            pauses.append(hand.op.seconds)
            hand.answer(None, after=hand.op.seconds)
        else:
            hand.throw(BackendUnavailable("down"), after=0.1)
    assert isinstance(hand.error, BackendUnavailable)
    assert hand.now - 100.0 == pytest.approx(timeout or 10.0, abs=0.6)
    assert pauses[0] <= 0.02
    assert max(pauses) <= 1.0
    assert len(hand.spawned) == 1  # it may have been carried out: withdrawn in the background


def test_one_try_does_not_try_again() -> None:
    hand = begin(0)
    hand.throw(OutcomeUnknown("no reply"))
    assert hand.done
    assert isinstance(hand.error, OutcomeUnknown)
    assert len(hand.spawned) == 1


def test_a_cancellation_rolls_back_before_it_is_seen() -> None:
    for steps in range(3):
        hand = begin()
        if steps > 0:
            hand.answer(taken(0, look_again=3.0))
        if steps > 1:
            hand.answer(None, after=3.0)
        hand.throw(Cancelled())
        see_withdrawal(hand)
        assert isinstance(hand.error, Cancelled)


def test_a_grant_that_is_over_on_arrival_is_no_grant() -> None:
    hand = begin(ttl=1.0)
    hand.answer(taken(7), after=1.5)
    assert isinstance(hand.request, Take)
    hand.answer(taken(7), after=0.1)
    assert hand.result.token == 7
    assert hand.result.deadline > hand.now


def test_an_engine_too_slow_for_the_ttl_is_called_so() -> None:
    """The first time it is asked again at once; then with a pause, until a ttl has passed."""
    hand = begin(ttl=1.0)
    hand.answer(taken(7), after=1.5)
    hand.answer(taken(7), after=1.5)
    assert hand.done
    assert isinstance(hand.error, BackendUnavailable)
    assert "2 grants of 'a' had expired when they arrived" in str(hand.error)
    assert len(hand.spawned) == 1


def test_grants_that_have_expired_are_asked_for_again_with_growing_pauses_until_it_passes() -> None:
    """The rest of a session that was silent for long is too short to hold: that is no mistake of the user's."""
    engine = ShortGrants(passing_after=6)
    hand = Hand(acquire(engine, CLAIM, engine.grant(100.0), 100.0, None))
    pauses = []
    while isinstance(hand.op, Sleep):
        pauses.append(hand.op.seconds)
        hand.answer(None, after=hand.op.seconds)
    assert hand.result.token == 7
    assert len(pauses) == 4
    assert pauses == sorted(pauses)


@pytest.mark.parametrize(("timeout", "asked_s"), [(None, 30.0), (2.0, 2.0)])
def test_grants_that_have_expired_are_asked_for_a_ttl_or_the_timeout(timeout: float | None, asked_s: float) -> None:
    engine = ShortGrants(passing_after=1000)
    hand = Hand(acquire(engine, CLAIM, engine.grant(100.0), 100.0, timeout))
    while isinstance(hand.op, Sleep):
        hand.answer(None, after=hand.op.seconds)
    assert isinstance(hand.error, BackendUnavailable)
    assert "for 0.5 s only" in str(hand.error)
    assert hand.now - 100.0 == pytest.approx(asked_s)


def test_several_names_whose_grants_have_expired_are_asked_for_again_with_pauses() -> None:
    hand = Hand(obtain_all(coordination(), [LockSpec("a", ttl=10.0), LockSpec("b", ttl=10.0)], None, "actor"))
    both = [Taken(7), Taken(8)]
    hand.answer(both, after=10.5)
    hand.answer(both, after=9.9)
    assert isinstance(hand.op, Sleep)
    hand.answer(None, after=hand.op.seconds)
    hand.answer(both, after=9.9)
    assert isinstance(hand.error, BackendUnavailable)
    assert "3 grants of 'a' had expired" in str(hand.error)


class ShortGrants:
    """Grants less than the margin needs, for some requests."""

    scheme, cluster, promises, least_ttl = "short", "c", Promises(frozenset()), 0.001

    def __init__(self, passing_after: int) -> None:
        self._left = passing_after

    def grant(self, now: float) -> Grant:
        self._left -= 1
        return Grant(7, now, 0.5 if self._left > 0 else 30.0)

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant]:
        return self.grant((yield NOW))

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[None]:
        raise NotImplementedError

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[list[None]]:
        raise NotImplementedError

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        raise NotImplementedError


CLAIM = Claim(LockSpec("a", ttl=30.0, margin=1.0), "owner", "actor")


def test_another_capacity_is_an_error_at_once() -> None:
    hand = begin()
    hand.answer([Taken(0, capacity=3)])
    if not hand.done:
        see_withdrawal(hand)
    assert isinstance(hand.error, Misconfigured)
    assert "3" in str(hand.error)


def test_withdrawing_goes_on_until_the_engine_answers() -> None:
    hand = begin(0)
    hand.throw(OutcomeUnknown("no reply"))
    errand = Hand(hand.spawned[0], hand.now)
    for _ in range(3):
        assert isinstance(errand.request, Release)
        errand.throw(BackendUnavailable("down"), after=0.1)
        assert isinstance(errand.op, Sleep)
        errand.answer(None, after=errand.op.seconds)
    errand.answer(True)
    assert errand.done
    assert errand.error is None


def test_withdrawing_ends_when_the_claim_has_ended_by_itself() -> None:
    hand = begin(0, ttl=5.0)
    hand.throw(OutcomeUnknown("no reply"))
    errand = Hand(hand.spawned[0], hand.now)
    while not errand.done:
        if isinstance(errand.op, Sleep):
            errand.answer(None, after=errand.op.seconds)
        else:
            errand.throw(BackendUnavailable("down"), after=0.1)
    assert errand.error is None
    assert errand.now <= hand.now + 5.0 + 2.0


def test_what_happened_is_told() -> None:
    events: list[Event] = []
    core = coordination(events.append)
    hand = Hand(core.obtain(LockSpec("a"), 0, "actor"))
    hand.answer(taken(0))
    hand = Hand(core.obtain(LockSpec("a"), None, "actor"))
    hand.answer(taken(7), after=0.5)
    hand = Hand(core.let_go(hand.result), now=110.0)
    hand.answer(True, after=0.25)
    assert [event.kind for event in events] == ["timed_out", "acquired", "released"]
    assert [event.seconds for event in events] == [0, 0.5, pytest.approx(9.75)]
