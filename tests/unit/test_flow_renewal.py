"""The keeper, step by step: when it renews, what a fault does, and that a deadline waits for nobody."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from holdfast._core.flow import Doze
from holdfast._core.lease import NEVER, Hold, drift
from holdfast._core.renewal import AT_ONCE, BATCH
from holdfast.backends.line import Renew
from holdfast.errors import BackendUnavailable, LeaseLost
from holdfast.model import Ask, Claim, Grant, State
from tests.unit.hand import Hand, coordination

TTL = 30.0
VALID = TTL - drift(TTL)


@dataclass
class Teller:
    """Writes down what a holder is told."""

    hold: Hold
    said: list[tuple[str, str | None]]

    def told(self, what: str) -> None:
        self.said.append((what, self.hold.reason))


class Kept:
    """A coordination with some holds, its keeper run by hand, and what the holders are told."""

    def __init__(self, count: int = 1, **options: object) -> None:
        self.core = coordination()
        self.told: list[tuple[str, str | None]] = []
        self.holds: list[Hold] = []
        for number in range(count):
            ask = Ask(f"n{number}", ttl=TTL, **options)  # type: ignore[arg-type]
            hold = Hold(Claim(ask, f"o{number}", "actor"), Grant(7, 100.0, TTL), 100.0)
            hold.listen(Teller(hold, self.told))
            self.holds.append(self.core.keep(hold, 0.0))
        self.hand = Hand(self.core.keeper.keep())
        self.errands: list[Hand] = []

    @property
    def hold(self) -> Hold:
        return self.holds[0]

    def doze(self) -> None:
        """Let the keeper sleep for as long as it wants to."""
        assert isinstance(self.hand.op, Doze)
        assert self.hand.op.timeout is not None
        self.hand.answer(None, after=self.hand.op.timeout)

    def until_renewal(self) -> Hand:
        """The hand at the first renewal: the keeper's own, or an errand's."""
        for _ in range(50):
            if not isinstance(self.hand.op, Doze):
                return self.hand
            if self.hand.spawned:
                self.errands.append(Hand(self.hand.spawned.pop(), self.hand.now))
                return self.errands[-1]
            self.doze()
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
    hand = kept.until_renewal()
    hand.throw(BackendUnavailable("down"), after=0.05)
    errand = kept.until_renewal()
    errand.throw(BackendUnavailable("down"), after=0.05)
    assert errand.done
    assert kept.told == [("jeopardy", None)]
    assert kept.hold.state is State.JEOPARDY
    assert kept.hold.renew_at < errand.now + 0.1
    kept.hold.check(errand.now)


def fail_until(kept: Kept, moment: float) -> None:
    """Every renewal fails, until then or until the lease is lost."""
    while kept.hold.alive and kept.hand.now < moment:
        hand = kept.until_renewal() if kept.hold.alive else kept.hand
        if isinstance(hand.op, Doze):
            break
        hand.throw(BackendUnavailable("down"), after=0.001)
        while kept.hold.alive and isinstance(kept.hand.op, Doze) and not kept.hand.spawned:
            if kept.hand.op.timeout is None:
                kept.hand.answer(None)
            else:
                kept.doze()


def test_one_success_brings_it_back() -> None:
    kept = Kept()
    fail_until(kept, 112.0)
    assert kept.told == [("jeopardy", None)]
    hand = kept.until_renewal()
    hand.answer(["held"], after=0.001)
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
    first = kept.until_renewal()
    assert first.op.timeout <= AT_ONCE  # the keeper itself waits a moment; then an errand does
    first.throw(BackendUnavailable("no reply"), after=first.op.timeout)
    hanging = kept.until_renewal()
    assert isinstance(hanging.request, Renew)
    while kept.hold.alive:
        kept.doze()
    assert kept.told == [("lost", "expired")]
    assert kept.hand.now == pytest.approx(kept.hold.deadline, abs=0.002)
    hanging.answer(["held"])  # too late: what is lost stays lost
    assert kept.hold.state is State.LOST
    assert kept.told == [("lost", "expired")]


def with_a_deadline(after: float, ttl: float = TTL) -> tuple[Kept, Hold]:
    """At its first renewal; and another hold, which nobody renews, ends so long after that began."""
    begins = Kept().until_renewal().now
    kept = Kept()
    ask = Ask("watched", ttl=ttl, renew=False, margin=0.0)
    since = begins + after - (ttl - drift(ttl))
    watched = Hold(Claim(ask, "w", "actor"), Grant(9, since, ttl), since)
    kept.core.keep(watched, 0.0)
    while kept.hand.now < begins:
        kept.doze()
    return kept, watched


def test_the_keeper_waits_for_a_reply_only_if_nothing_else_is_due_until_then() -> None:
    kept, watched = with_a_deadline(after=AT_ONCE + 0.05)
    assert isinstance(kept.hand.request, Renew)
    assert kept.hand.op.timeout == AT_ONCE, "no less: a request that is given up costs the connection"
    kept.hand.throw(BackendUnavailable("no reply"), after=kept.hand.op.timeout)
    while watched.alive:
        kept.doze()
    assert kept.hand.now == pytest.approx(watched.deadline, abs=0.002)


def test_what_is_due_in_a_moment_comes_first_and_then_the_renewal_without_an_errand() -> None:
    kept, watched = with_a_deadline(after=0.01)
    assert isinstance(kept.hand.op, Doze)
    assert kept.hand.op.timeout is not None
    assert kept.hand.op.timeout <= 0.01
    while watched.alive:
        assert not kept.hand.spawned
        kept.doze()
    assert kept.hand.now == pytest.approx(watched.deadline, abs=0.002)
    hand = kept.until_renewal()
    assert hand is kept.hand
    assert [claim.owner for claim in hand.request.claims] == ["o0"]


def test_a_renewal_is_put_off_for_a_moment_only() -> None:
    kept, watched = with_a_deadline(after=0.01)
    began = kept.hand.now
    ask = Ask("another", ttl=TTL, renew=False, margin=0.0)
    for number in range(1, 30):
        since = watched.deadline + 0.01 * number - (TTL - drift(TTL))
        kept.core.keep(Hold(Claim(ask, f"a{number}", "actor"), Grant(11, since, TTL), since), 0.0)
    kept.hand.answer(None)
    assert kept.until_renewal() in kept.errands
    assert kept.hand.now <= began + 2 * AT_ONCE


def test_what_has_no_time_to_lose_is_not_put_off() -> None:
    begins = 100.0
    kept = Kept()
    short = Hold(Claim(Ask("short", ttl=0.2), "s", "actor"), Grant(8, begins, 0.2), begins)
    kept.core.keep(short, 0.0)
    ask = Ask("watched", ttl=TTL, renew=False, margin=0.0)
    since = short.renew_at + 0.005 - (TTL - drift(TTL))
    kept.core.keep(Hold(Claim(ask, "w", "actor"), Grant(9, since, TTL), since), 0.0)
    kept.hand.answer(None)  # rung for
    hand = kept.until_renewal()
    assert [claim.owner for claim in hand.request.claims] == ["s"]
    assert hand.now < short.since + (short.deadline - short.since) / 3 + 0.004


def test_without_renewal_it_only_watches_the_deadline() -> None:
    kept = Kept(renew=False)
    while kept.hold.alive:
        kept.doze()
        assert not kept.hand.spawned
    assert kept.told == [("lost", "expired")]
    assert kept.hand.now == pytest.approx(kept.hold.deadline, abs=0.002)


def test_max_hold_is_a_deadline_that_no_renewal_moves() -> None:
    kept = Kept(max_hold=45.0)
    kept.until_renewal().answer(["held"], after=0.01)
    assert kept.hold.deadline <= 145.0
    for _ in range(200):
        if not kept.hold.alive:
            break
        if isinstance(kept.hand.op, Doze):
            kept.doze()
        else:
            kept.hand.answer(["held"], after=0.01)
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
    kept.doze()
    assert not kept.hand.spawned


def test_many_leave_in_one_batch() -> None:
    kept = Kept(count=BATCH)
    hand = kept.until_renewal()
    assert len(hand.request.claims) == BATCH
    hand.answer(["held"] * (BATCH - 1) + ["evicted"], after=0.01)
    assert kept.told == [("lost", "evicted")]


def test_it_sleeps_until_somebody_rings_when_there_is_nothing_to_keep() -> None:
    hand = Hand(coordination().keeper.keep())
    assert isinstance(hand.op, Doze)
    assert hand.op.timeout is None


def test_it_ends_when_it_is_closed() -> None:
    kept = Kept()
    kept.core.keeper.close()
    kept.hand.answer(None)
    assert kept.hand.done
    assert kept.hand.error is None
