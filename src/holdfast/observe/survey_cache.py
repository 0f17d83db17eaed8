"""What was seen last, so that a page that is asked for often does not ask an engine as often.

An engine that does not answer is seen, too: as None.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ..errors import HoldfastError

T = TypeVar("T")


class SurveyCache(Generic[T]):
    """Looks when it is asked, and not again within `interval` seconds of `now`, which is a clock."""

    def __init__(self, look: Callable[[], T], now: Callable[[], float], interval: float) -> None:
        self._look, self._now, self._interval = look, now, interval
        self._mutex = threading.Lock()
        self._seen: tuple[float, T | None] | None = None

    def get(self) -> T | None:
        with self._mutex:
            if self._seen is None or self._now() - self._seen[0] >= self._interval:
                try:
                    found: T | None = self._look()
                except HoldfastError:
                    found = None
                self._seen = (self._now(), found)
            return self._seen[1]
