"""The open coordinators of this process: closed at its end, and made to hold nothing in a forked child."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol


class Registered(Protocol):
    def forked(self) -> None: ...

    def at_exit(self) -> None: ...


_open: weakref.WeakSet[Registered] = weakref.WeakSet()


def register(coordinator: Registered) -> None:
    _open.add(coordinator)


def unregister(coordinator: Registered) -> None:
    _open.discard(coordinator)


def _after_fork() -> None:
    for coordinator in list(_open):
        coordinator.forked()


def _at_exit() -> None:
    for coordinator in list(_open):
        coordinator.at_exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
