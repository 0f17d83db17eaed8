"""The keeper, step by step: when it renews, what a fault does, and that a deadline waits for nobody."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from holdfast._core.flow import Flow, WaitEvent
from holdfast._core.lease import NEVER, Hold, drift
from holdfast._core.renewal import BATCH_COUNT, RENEWER_COUNT, THREAD_RETRY_S
from holdfast.backends.queue_backend import Renew
from holdfast.errors import BackendUnavailable, LeaseLost
from holdfast.model import Claim, Grant, LockSpec, State
from tests.unit.hand import Hand, coordination

TTL = 30.0
VALID = TTL - drift(TTL)


@dataclass
class Teller:
    """Writes down what a holder is told."""

    hold: Hold
    said: list[tuple[str, str | None]]

    def _told(self, what: str) -> None:
        self.said.append((what, self.hold.reason))


class Kept:
    """A coordination with some holds, its watch run by hand, its renewals beside it, and what the holders are told."""

    def __init__(self, count: int = 1, **options: object) -> None:
        self.begun: list[Flow[None]] = []
        self.core = coordination(begun=self.begun)
        self.told: list[tuple[str, str | None]] = []
        self.holds: list[Hold] = []
        for number in range(count):
            spec = LockSpec(f"n{number}", ttl=TTL, **options)  # type: ignore[arg-type]
            hold = Hold(Claim(spec, f"o{number}", "actor"), Grant(7, 100.0, TTL), 100.0)
            hold.listen(Teller(hold, self.told), keep=True)
            self.holds.append(self.core.keep(hold, 0.0))
        self.hand = Hand(self.core.keeper.watch())

    @property
    def hold(self) -> Hold:
        return self.holds[0]

    def wait(self) -> None:
        """Let the watch sleep for as long as it wants to. It never does anything else."""
        assert isinstance(self.hand.op, WaitEvent)
        if self.hand.op.timeout is None:
            self.hand.answer(None)
        else:
            self.hand.answer(None, after=self.hand.op.timeout)

    def until_renewal(self) -> Hand:
        """The next renewal that is begun, at its request."""
        for _ in range(50):
            if self.begun:
                return Hand(self.begun.pop(), self.hand.now)
            self.wait()
        raise AssertionError("it never renews")


def test_it_renews_at_a_third() -> None:
    kept = Kept()
    hand = kept.until_renewal()
    assert isinstance(hand.request, Renew)
    assert hand.now == pytest.approx(100.0 + VALID / 3, rel=0.05)
    assert [claim.token for claim in hand.request.claims] == [7]


def test_validity_counts_from_when_the_renewal_was_sent() -> None:
    kept = Kept()
    hand = kept.until_renewal()
    sent = hand.now
    hand.answer(["held"], after=0.05)
    assert kept.hold.valid_until == pytest.approx(sent + VALID)
    assert kept.told == []


def test_a_renewal_that_adds_nothing_is_tried_again() -> None:
    """A session may have no news since the last one: that is no reason to stop asking."""
    kept = Kept()
    hand = kept.until_renewal()
    [hold] = kept.holds
    until = hold.valid_until
    hold.renew_at = NEVER  # as the keeper leaves it while a renewal is under way
    hold.extend(100.0, TTL, hand.now)
    assert hold.valid_until == until
    assert hand.now < hold.renew_at < hold.deadline
    hold.extend(100.0, TTL, hold.deadline)
    assert hold.renew_at < NEVER


def test_a_failed_renewal_is_jeopardy_and_is_tried_again_soon() -> None:
    kept = Kept()
    renewal = kept.until_renewal()
    renewal.throw(BackendUnavailable("down"), after=0.05)
    assert renewal.done
    assert kept.told == [("jeopardy", None)]
    assert kept.hold.state is State.JEOPARDY
    assert kept.hold.renew_at < renewal.now + 0.1
    kept.hold.check(renewal.now)


def fail_until(kept: Kept, moment: float) -> None:
    """Every renewal fails, until then or until the lease is lost."""
    while kept.hold.alive and kept.hand.now < moment:
        while kept.begun:
            renewal = Hand(kept.begun.pop(), kept.hand.now)
            renewal.throw(BackendUnavailable("down"), after=0.001)
            kept.hand.now = renewal.now
            kept.hand.answer(None)  # rung for
        if kept.hold.alive:
            kept.wait()


def test_one_success_brings_it_back() -> None:
    kept = Kept()
    fail_until(kept, 112.0)
    assert kept.told == [("jeopardy", None)]
    kept.until_renewal().answer(["held"], after=0.001)
    assert kept.told == [("jeopardy", None), ("recovered", None)]
    assert kept.hold.state is State.HELD


def test_failure_until_the_deadline_is_a_loss_before_validity_ends() -> None:
    kept = Kept()
    fail_until(kept, 200.0)
    assert kept.told == [("jeopardy", None), ("lost", "expired")]
    assert kept.hand.now < 100.0 + VALID
    with pytest.raises(LeaseLost):
        kept.hold.check(kept.hand.now)


@pytest.mark.parametrize("reason", ["refused", "evicted", "expired"])
def test_a_refusal_is_a_loss_with_its_reason(reason: str) -> None:
    kept = Kept()
    kept.until_renewal().answer([reason], after=0.01)
    assert kept.told == [("lost", reason)]


def test_the_deadline_does_not_wait_for_a_renewal_that_hangs() -> None:
    kept = Kept()
    hanging = kept.until_renewal()
    assert isinstance(hanging.request, Renew)
    while kept.hold.alive:
        kept.wait()
    assert kept.told == [("lost", "expired")]
    assert kept.hand.now == pytest.approx(kept.hold.deadline, abs=0.002)
    hanging.answer(["held"])  # too late: what is lost stays lost
    assert kept.hold.state is State.LOST
    assert kept.told == [("lost", "expired")]


def test_a_renewal_that_hangs_is_sent_once_more_by_another() -> None:
    """By half of the time that was left; and a few times only."""
    kept = Kept()
    renewals = [kept.until_renewal()]
    half = (renewals[0].now + kept.hold.deadline) / 2
    renewals.append(kept.until_renewal())
    assert renewals[1].now == pytest.approx(half, rel=0.01)
    while kept.hold.alive:
        kept.wait()
        renewals += [Hand(flow, kept.hand.now) for flow in kept.begun]
        kept.begun.clear()
    assert len(renewals) == RENEWER_COUNT


def test_the_second_renewal_saves_what_the_first_one_hangs_with() -> None:
    kept = Kept()
    kept.until_renewal()
    second = kept.until_renewal()
    second.answer(["held"], after=0.01)
    assert kept.hold.valid_until == pytest.approx(second.now - 0.01 + VALID)
    assert kept.told == []


def test_a_renewal_that_was_ended_from_outside_is_begun_again_at_once() -> None:
    """As when a program cancels all tasks of its loop."""
    kept = Kept()
    renewal = kept.until_renewal()
    renewal.throw(KeyboardInterrupt())
    assert isinstance(renewal.error, KeyboardInterrupt)
    began = kept.hand.now
    kept.hand.answer(None)  # rung for
    assert kept.until_renewal().now == began
    assert kept.told == []


def test_short_of_threads_it_tries_again_in_a_moment() -> None:
    kept = Kept()
    kept.core.keeper._begin = lambda flow: False
    pauses = []
    for _ in range(30):
        kept.wait()
        pauses.append(kept.hand.op.timeout)
    assert pytest.approx(THREAD_RETRY_S) in pauses
    assert kept.hold.alive


def test_without_renewal_it_only_watches_the_deadline() -> None:
    kept = Kept(renew=False)
    while kept.hold.alive:
        kept.wait()
        assert not kept.begun
    assert kept.told == [("lost", "expired")]
    assert kept.hand.now == pytest.approx(kept.hold.deadline, abs=0.002)


def test_max_hold_is_a_deadline_that_no_renewal_moves() -> None:
    kept = Kept(max_hold=45.0)
    kept.until_renewal().answer(["held"], after=0.01)
    assert kept.hold.deadline <= 145.0
    for _ in range(200):
        if not kept.hold.alive:
            break
        kept.wait()
        while kept.begun:
            Hand(kept.begun.pop(), kept.hand.now).answer(["held"], after=0.01)
    assert kept.told == [("lost", "max_hold")]
    assert kept.hand.now == pytest.approx(145.0, abs=0.002)


def test_what_was_released_is_not_renewed() -> None:
    kept = Kept(count=2)
    release = Hand(kept.core.let_go(kept.holds[0]), now=105.0)
    release.answer(True)
    assert release.result is True
    hand = kept.until_renewal()
    assert [claim.owner for claim in hand.request.claims] == ["o1"]


def test_released_while_its_renewal_is_under_way_it_stays_released() -> None:
    kept = Kept()
    hand = kept.until_renewal()
    Hand(kept.core.let_go(kept.hold), now=hand.now).answer(True)
    hand.answer(["held"], after=0.01)
    assert kept.hold.state is State.RELEASED
    assert kept.told == []
    kept.wait()
    assert not kept.begun


def test_many_leave_in_one_batch() -> None:
    kept = Kept(count=BATCH_COUNT)
    hand = kept.until_renewal()
    assert len(hand.request.claims) == BATCH_COUNT
    hand.answer(["held"] * (BATCH_COUNT - 1) + ["evicted"], after=0.01)
    assert kept.told == [("lost", "evicted")]


def test_it_sleeps_until_somebody_rings_when_there_is_nothing_to_keep() -> None:
    hand = Hand(coordination().keeper.watch())
    assert isinstance(hand.op, WaitEvent)
    assert hand.op.timeout is None


def test_it_ends_when_it_is_closed() -> None:
    kept = Kept()
    kept.core.keeper.close()
    kept.hand.answer(None)
    assert kept.hand.done
    assert kept.hand.error is None
