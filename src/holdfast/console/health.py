"""What takes longer than a survey and changes seldom: the doctor's findings, programs' pages, fences, limits.

One thread of its own asks for each when it is due. What cannot be asked for is told, and asked for again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..observe.log_exception import log_exception
from .fences import FenceReadings
from .scrape import ScrapedMetrics

HEALTH_INTERVAL_S = 300.0
METRICS_INTERVAL_S = 15.0
RATES_INTERVAL_S = 2.0
FENCES_INTERVAL_S = 5.0


class SlowWatcher:
    """`examine` gives the doctor's report as data, `scrape` what programs count, `rates` the limits to watch."""

    def __init__(
        self,
        examine: Callable[[], Mapping[str, Any]],
        scrape: Callable[[], ScrapedMetrics] | None = None,
        rates: Callable[[], Sequence[Mapping[str, Any]]] | None = None,
        fences: Callable[[], FenceReadings] | None = None,
    ) -> None:
        self._jobs: list[tuple[float, Callable[[], None]]] = [(HEALTH_INTERVAL_S, lambda: self._examine(examine))]
        if scrape is not None:
            self._jobs.append((METRICS_INTERVAL_S, lambda: self._scrape(scrape)))
        if rates is not None:
            self._jobs.append((RATES_INTERVAL_S, lambda: self._rates(rates)))
        if fences is not None:
            self._jobs.append((FENCES_INTERVAL_S, lambda: self._fences(fences)))
        self.health: dict[str, Any] = {"at": None, "report": None, "problem": None}
        self.scraped: ScrapedMetrics | None = None
        self.rates: Sequence[Mapping[str, Any]] = ()
        self.fences: FenceReadings | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-console-health", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """An engine that hangs may hold up the doctor for long: it is not waited for longer than this."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _examine(self, examine: Callable[[], Mapping[str, Any]]) -> None:
        self.health = {"at": time.time(), "report": examine(), "problem": None}

    def _scrape(self, scrape: Callable[[], ScrapedMetrics]) -> None:
        self.scraped = scrape()

    def _rates(self, rates: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        self.rates = rates()

    def _fences(self, fences: Callable[[], FenceReadings]) -> None:
        self.fences = fences()

    def _run(self) -> None:
        due = [0.0] * len(self._jobs)
        while not self._over.is_set():
            for number, (interval, job) in enumerate(self._jobs):
                if due[number] <= time.monotonic() and not self._over.is_set():
                    try:
                        job()
                    except Exception as error:  # noqa: BLE001 - it is asked again, and the page says why there is nothing
                        log_exception("the console could not look after the engine")
                        if number == 0:
                            self.health = {**self.health, "problem": f"{type(error).__name__}: {error}"}
                    due[number] = time.monotonic() + interval
            self._over.wait(max(0.05, min(due) - time.monotonic()))
