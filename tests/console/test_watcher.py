"""One thread surveys for everybody, no more often than it may, and goes on when the engine does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.console.watcher import Watcher
from holdfast.errors import BackendUnavailable
from holdfast.model import ClaimView, LockView
from tests.cli.harness import LONG

HOLD = ClaimView("a-1", 7, 1, "db1", 11, since=0.0, remaining=10.0, age=0.0)
VIEW = LockView("x", 1, (HOLD,), ())


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def slow(self, seconds: float, views: list[LockView]) -> Callable[[], list[LockView]]:
        def survey() -> list[LockView]:
            self.time += seconds
            return views

        return survey


def watcher(hand: Hand, survey: Callable[[], list[LockView]], interval: float) -> Watcher:
    return Watcher(survey, interval, now=hand.now, monotonic=hand.now)


def test_surveys_begin_an_interval_apart() -> None:
    hand = Hand()
    assert watcher(hand, hand.slow(0.1, []), 2.0).look() == 1.9


def test_a_slow_survey_is_made_less_often_it_takes_a_fifth_of_the_time() -> None:
    hand = Hand()
    assert watcher(hand, hand.slow(3.0, []), 2.0).look() == 12.0


def test_an_interval_of_nothing_does_not_keep_the_engine_busy() -> None:
    hand = Hand()
    assert watcher(hand, hand.slow(0.0, []), 0.0).look() > 0


def test_an_engine_that_does_not_answer_is_told_beside_what_was_seen_last() -> None:
    hand, answers = Hand(), [True, False, True]

    def survey() -> list[LockView]:
        hand.time += 1.0
        if answers.pop(0):
            return [VIEW]
        raise BackendUnavailable("redis is away")

    watching = watcher(hand, survey, 1.0)
    watching.look()
    watching.look()
    assert "redis is away" in watching.snapshot.problem
    assert (watching.snapshot.at, watching.snapshot.version) == (1.0, 2)
    assert [view.name for view in watching.snapshot.views] == ["x"]
    watching.look()
    assert watching.snapshot.problem == ""


def test_a_defect_is_told_and_the_watching_goes_on(caplog: object) -> None:
    seen, again = [], threading.Event()

    def survey() -> list[LockView]:
        seen.append(1)
        if len(seen) > 1:
            again.set()
        raise ZeroDivisionError("a bug")

    watching = Watcher(survey, 0.05)
    watching.start()
    assert again.wait(LONG)
    watching.stop()
    assert "ZeroDivisionError" in watching.snapshot.problem


def test_a_change_from_here_is_seen_without_waiting_for_the_interval() -> None:
    looked = threading.Semaphore(0)

    def survey() -> list[LockView]:
        looked.release()
        return []

    watching = Watcher(survey, 3600.0)
    watching.start()
    assert looked.acquire(timeout=LONG)
    watching.hurry()
    assert looked.acquire(timeout=LONG)
    watching.stop()
