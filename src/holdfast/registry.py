"""The open coordinators of this process: closed at its end, and made to hold nothing in a forked child."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol


class Registered(Protocol):
    def freeze(self) -> None: ...

    def thaw(self) -> None: ...

    def forked(self) -> None: ...

    def at_exit(self) -> None: ...


_open: weakref.WeakSet[Registered] = weakref.WeakSet()


def register(coordinator: Registered) -> None:
    _open.add(coordinator)


def unregister(coordinator: Registered) -> None:
    _open.discard(coordinator)


_frozen: list[Registered] = []


def _before_fork() -> None:
    _frozen.extend(_open)
    for coordinator in _frozen:
        coordinator.freeze()


def _after_fork_in_parent() -> None:
    while _frozen:
        _frozen.pop().thaw()


def _after_fork_in_child() -> None:
    while _frozen:
        _frozen.pop().forked()


def _at_exit() -> None:
    for coordinator in list(_open):
        coordinator.at_exit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
