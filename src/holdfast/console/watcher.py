"""The one who surveys: a thread that asks the engine, for all browsers together.

1. Surveys begin at least `interval` apart, and a survey takes at most a fifth of the time: one that takes a second is
   made every five seconds. So a large engine is not kept busy by its console.
2. An engine that does not answer is a `problem` beside the last snapshot, and is asked again.
3. Every attempt makes a new snapshot with a new version, and whoever subscribed is called, in this thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from ..errors import HoldfastError
from ..model import ClaimView, LockView
from ..observe.log_exception import log_exception
from .history import MarkKind, SeenHold, SurveyHistory, TimelineMark
from .snapshot import SurveySnapshot

LEAST_INTERVAL_S = 0.05
BUSY_RATIO = 0.2


class Watcher:
    """Surveys until it is stopped. `survey` asks the engine; the clocks are those of `time`."""

    def __init__(
        self,
        survey: Callable[[], Sequence[LockView]],
        interval: float,
        *,
        prefix: str = "",
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._survey, self._now, self._monotonic = survey, now, monotonic
        self.prefix = prefix
        """What all names begin with that `survey` asks for."""
        self.interval = max(LEAST_INTERVAL_S, interval)
        self.snapshot = SurveySnapshot(0, [], problem="the engine has not been asked yet")
        self._history = SurveyHistory()
        self._mutex = threading.Lock()
        self._subscribers: list[Callable[[], object]] = []
        self._over = threading.Event()
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-console", daemon=True)

    def subscribe(self, call: Callable[[], object]) -> None:
        """Call this after every survey."""
        self._subscribers.append(call)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join()

    def hurry(self) -> None:
        """Survey now, not at the end of the interval: something was changed from here."""
        self._wanted.set()

    def look(self) -> float:
        """Survey once. Answers how long to wait before the next one (rule 1)."""
        began = self._monotonic()
        version = self.snapshot.version + 1
        try:
            views = self._survey()
        except HoldfastError as error:
            self.snapshot = self.snapshot.failed(version, str(error))
        else:
            took, at = self._monotonic() - began, self._now()
            with self._mutex:
                self._history.see(views, at)
                self.snapshot = SurveySnapshot(version, views, at=at, took=took)
        for call in self._subscribers:
            call()
        spent = self._monotonic() - began
        return max(self.interval - spent, spent / BUSY_RATIO - spent)

    def mark(self, name: str, kind: MarkKind, note: str, token: int | None = None) -> None:
        """Tell the history what no survey shows."""
        with self._mutex:
            self._history.mark(name, kind, self._now(), note, token)

    def timeline(self, name: str) -> tuple[list[SeenHold], list[TimelineMark]]:
        """What was seen of a name."""
        with self._mutex:
            return self._history.of(name)

    def ttl(self, name: str, claim: ClaimView) -> float:
        """The most that was ever left of a hold."""
        with self._mutex:
            return self._history.ttl(name, claim)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                pause = self.look()
            except Exception as error:  # noqa: BLE001 - a defect of ours must not end the watching unseen
                log_exception("the console could not survey")
                self.snapshot = self.snapshot.failed(self.snapshot.version + 1, f"{type(error).__name__}: {error}")
                pause = self.interval
            self._wanted.wait(pause)
            self._wanted.clear()
