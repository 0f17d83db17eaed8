"""How often, and for how long, a change is tried again; and how often somebody else was quicker.

1. A try is: read, change, write if nobody else has written since. Full jitter between two tries.
2. It is bounded twice: by `attempts`, and by `timeout` (no try begins after it). The first try is always made.
3. `Stats` counts what happened in this process. Counting is safe between threads; a forked child goes on from a copy.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from .._core.backoff import ceiling
from ..errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Retry:
    """The bounds of an update, and its pauses (seconds): a random time up to `base`, then 2 x, 4 x ... up to `cap`.

    >>> Retry(attempts=3).pause(tries=3, elapsed=0.0, chance=0.5) is None     # the third try was the last
    True
    """

    attempts: int = 20
    timeout: float | None = 10.0
    base: float = 0.005
    cap: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or isinstance(self.attempts, bool) or self.attempts < 1:
            raise Misconfigured(f"attempts is {self.attempts!r}; give a whole number from 1")
        for name in ("timeout", "base", "cap"):
            seconds = getattr(self, name)
            if seconds is None and name == "timeout":
                continue
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
                raise Misconfigured(f"{name} is {seconds!r}; give seconds from 0")

    def pause(self, tries: int, elapsed: float, chance: float) -> float | None:
        """How long to wait after so many tries that met a conflict; None: give up."""
        if tries >= self.attempts:
            return None
        pause = chance * ceiling(tries - 1, self.base, self.cap)
        return None if self.timeout is not None and elapsed + pause >= self.timeout else pause


@dataclass(slots=True)
class Stats:
    """How often a value was updated, how many tries that took, and how many of them met a conflict.

    Registers may share one: `stats=` of each, and of `holdfast.sql.retry`.

    >>> Stats(updates=71, tries=100, conflicts=29).conflict_rate
    0.29
    """

    updates: int = 0
    tries: int = 0
    conflicts: int = 0

    @property
    def conflict_rate(self) -> float:
        """The part of the tries that met a conflict, from 0 to 1. Much of it: take a lock instead."""
        return self.conflicts / self.tries if self.tries else 0.0

    def count(self, *, updates: int = 0, tries: int = 0, conflicts: int = 0) -> None:
        """Add to the counts."""
        with _mutex:
            self.updates += updates
            self.tries += tries
            self.conflicts += conflicts


_mutex = threading.Lock()


def _start_anew() -> None:
    global _mutex
    _mutex = threading.Lock()  # another thread may have held it when we were forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
