"""The clock of the real drivers: monotonic, and it goes on while the machine is suspended.

`time.monotonic` stops in suspend on Linux and macOS: a holder that closed its laptop for an hour would believe that
no time has passed while its lease ran out at the engine. The boot-time clock counts on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial


def _choose() -> Callable[[], float]:
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):  # Linux; macOS, where this one counts sleep
        if (clock := getattr(time, name, None)) is not None:
            return partial(time.clock_gettime, clock)
    return time.monotonic


now: Callable[[], float] = _choose()
"""Seconds on the boot-time clock; the same for all processes of one machine."""


def calendar_us() -> int:
    """Calendar time in microseconds: only ever a lower bound for tokens, never a measure of validity."""
    return time.time_ns() // 1000
