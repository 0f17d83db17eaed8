"""Timers of a member that may be paused."""

from __future__ import annotations

from collections.abc import Callable

from ..model import Timer


class MemberTimer:
    """It can be cancelled even when its time has come while its member was paused."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action
        self.of_host: Timer | None = None

    def fire(self) -> None:
        if self._action is not None:
            self._action()

    def cancel(self) -> None:
        self._action = None
        if self.of_host is not None:
            self.of_host.cancel()
