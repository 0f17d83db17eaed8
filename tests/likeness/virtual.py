"""A machine for a model whose time passes only when the play says so."""

from __future__ import annotations

from collections.abc import Callable
from random import Random


class VirtualTimer:
    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class VirtualTime:
    """A machine on which time passes when the play says so."""

    def __init__(self, calendar: float, chance: Random | None = None) -> None:
        self.chance = chance or Random(0)
        self._now = 0.0
        self._calendar = calendar
        self._timers: list[VirtualTimer] = []

    def now(self) -> float:
        return self._now

    def calendar(self) -> float:
        return self._calendar

    def set_calendar(self, calendar: float) -> None:
        self._calendar = calendar

    def after(self, seconds: float, action: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(self._now + seconds, action)
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float = 0.0) -> None:
        """Let time pass, with all that happens in it."""
        end = self._now + seconds
        while due := [timer for timer in self._timers if timer.when <= end]:
            timer = min(due, key=lambda one: one.when)
            self._timers.remove(timer)
            self._now = max(self._now, timer.when)
            if timer.action is not None:
                timer.action()
        self._now = end
