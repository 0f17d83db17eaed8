"""Repeated news is limited: of one kind, `BURST_COUNT` lines in `PERIOD_S`; the next line says how many were left out.

`LockLog` limits its lines by kind and family. Everything else of this package goes to the logger "holdfast" itself
(refusals at fences, hooks, listeners and exporters that raise), and is limited there by a filter: by the text, and by
the resource of a fence. A zombie in a loop, or a listener that always raises, fills no disk.
"""

from __future__ import annotations

import logging
import threading
import time

BURST_COUNT = 5
PERIOD_S = 10.0
MAX_KINDS_COUNT = 1000
"""So many kinds of news are remembered; then the memory begins anew."""


class LogLimit:
    """What was logged lately, by kind."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._recent: dict[object, list[float]] = {}
        """By kind: when the present period began, how many lines it had, and how many were left out."""

    def admit(self, kind: object, now: float) -> int | None:
        """How many lines were left out before this one; None if it is to be left out, too."""
        with self._mutex:
            if len(self._recent) >= MAX_KINDS_COUNT and kind not in self._recent:
                self._recent.clear()
            recent = self._recent.setdefault(kind, [now, 0, 0])
            if now - recent[0] >= PERIOD_S:
                recent[0], recent[1] = now, 0
            if recent[1] >= BURST_COUNT:
                recent[2] += 1
                return None
            recent[1] += 1
            suppressed, recent[2] = int(recent[2]), 0
            return suppressed


def left_out(count: int) -> str:
    """The end of a line before which so many were left out."""
    return f" ({count} more like it were not logged)"


class RepeatFilter(logging.Filter):
    """Limits what is logged to one logger, but not its DEBUG: whoever turns that on wants all."""

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._limit = LogLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        count = self._limit.admit((record.msg, getattr(record, "resource", "")), time.monotonic())
        if count:
            record.suppressed = count
            record.msg = str(record.msg) + left_out(count)
        return count is not None


def limit_repeats() -> None:
    """Have the logger "holdfast" limited. A second call does nothing."""
    logger = logging.getLogger("holdfast")
    if not any(isinstance(each, RepeatFilter) for each in logger.filters):
        logger.addFilter(RepeatFilter())
