"""What the console remembers of a name is what it saw: grants, how holds ended, gaps, overlaps; and never too much."""

from __future__ import annotations

from dataclasses import replace

from holdfast.console.history import SeenHold, SurveyHistory
from holdfast.model import ClaimView, LockView

HOLD = ClaimView("a-1", 7, 1, "db1", 11, since=0.0, remaining=10.0, age=0.0)
NEXT = replace(HOLD, owner="b-1", token=8, host="db2")
WAITER = replace(HOLD, owner="b-1", token=None, age=3.0)


def view(*holders: ClaimView, waiters: tuple[ClaimView, ...] = (), capacity: int = 1, name: str = "x") -> LockView:
    return LockView(name, capacity, holders, waiters)


def outcomes(history: SurveyHistory, name: str = "x") -> list[tuple[int | None, str]]:
    return [(hold.token, hold.outcome) for hold in history.of(name)[0]]


def marks(history: SurveyHistory) -> list[tuple[str, float, float]]:
    return [(mark.kind, mark.begin, mark.end) for mark in history.of("x")[1]]


def test_a_hold_begins_when_the_engine_says_so() -> None:
    history = SurveyHistory()
    history.see([view(replace(HOLD, age=4.0))], at=100.0)
    (hold,) = history.of("x")[0]
    assert (hold.begin, hold.end, hold.outcome) == (96.0, None, "held")


def test_a_hold_that_is_gone_before_its_ttl_has_ended() -> None:
    history = SurveyHistory()
    history.see([view(replace(HOLD, remaining=9.0))], at=100.0)
    history.see([], at=101.0)
    assert outcomes(history) == [(7, "ended")]


def test_a_hold_whose_ttl_ran_out_between_two_surveys_has_expired() -> None:
    history = SurveyHistory()
    history.see([view(replace(HOLD, remaining=10.0))], at=100.0)
    history.see([view(replace(HOLD, remaining=0.5, age=9.5))], at=109.5)
    history.see([], at=110.5)
    assert outcomes(history) == [(7, "expired")]


def test_after_an_outage_nobody_claims_to_know_how_a_hold_ended() -> None:
    history = SurveyHistory()
    history.see([view(HOLD)], at=100.0)
    history.see([], at=160.0)
    assert outcomes(history) == [(7, "unknown")]


def test_an_eviction_from_here_is_known() -> None:
    history = SurveyHistory()
    history.see([view(HOLD)], at=100.0)
    history.mark("x", "evicted", 100.5, "token 7 was evicted", 7)
    history.see([], at=101.0)
    assert outcomes(history) == [(7, "evicted")]
    assert marks(history) == [("evicted", 100.5, 100.5)]


def test_a_hand_over_tells_the_wait_and_has_no_gap() -> None:
    history = SurveyHistory()
    history.see([view(HOLD, waiters=(WAITER,))], at=100.0)
    history.see([view(replace(NEXT, age=0.4))], at=101.0)
    first, second = history.of("x")[0]
    assert (first.outcome, first.end) == ("ended", 100.6)
    assert (second.begin, second.waited) == (100.6, 3.0)
    assert marks(history) == []


def test_time_without_a_holder_is_a_gap_and_who_waited_meanwhile_counts() -> None:
    history = SurveyHistory()
    history.see([view(HOLD)], at=100.0)
    history.see([view(waiters=(WAITER,))], at=101.0)
    history.see([view(replace(NEXT, age=0.0))], at=105.0)
    assert marks(history) == [("gap", 101.0, 105.0)]
    assert history.of("x")[1][0].waited


def test_a_name_that_was_gone_altogether_has_a_gap_too() -> None:
    history = SurveyHistory()
    history.see([view(HOLD)], at=100.0)
    history.see([], at=101.0)
    history.see([], at=102.0)
    history.see([view(replace(NEXT, age=1.0))], at=110.0)
    assert marks(history) == [("gap", 101.0, 109.0)]
    assert not history.of("x")[1][0].waited


def test_more_weight_than_the_capacity_is_an_overlap_for_as_long_as_it_lasts() -> None:
    history = SurveyHistory()
    for at in (100.0, 101.0, 102.0):
        history.see([view(HOLD, NEXT)], at)
    history.see([view(NEXT)], 103.0)
    assert marks(history) == [("overlap", 100.0, 102.0)]
    assert "7, 8" in history.of("x")[1][0].note


def test_an_overlap_is_kept_when_the_name_is_gone() -> None:
    history = SurveyHistory()
    history.see([view(HOLD, NEXT)], 100.0)
    history.see([], 101.0)
    assert marks(history) == [("overlap", 100.0, 100.0)]


def test_holders_within_the_capacity_are_none_nor_is_one_that_lingers() -> None:
    history = SurveyHistory()
    history.see([view(HOLD, NEXT, capacity=2)], 100.0)
    history.see([view(replace(HOLD, live=False), NEXT)], 101.0)
    assert marks(history) == []


def test_what_is_remembered_is_bounded_by_name_and_in_all() -> None:
    history = SurveyHistory(per_name=10, in_all=25)
    for turn in range(200):
        name = f"n{turn % 5}"
        history.see([view(replace(HOLD, token=turn + 1), name=name)], at=100.0 + turn)
        assert history.size <= 25
        assert all(len(history.of(f"n{number}")[0]) <= 11 for number in range(5))
    assert history.of("n4")[0]  # what changed last is what is still there


def test_the_ttl_of_a_hold_is_the_most_that_was_left_of_it() -> None:
    history = SurveyHistory()
    for left in (8.0, 9.9, 7.0):
        history.see([view(replace(HOLD, remaining=left))], at=100.0)
    assert history.ttl("x", replace(HOLD, remaining=7.0)) == 9.9
    assert isinstance(history.of("x")[0][0], SeenHold)
