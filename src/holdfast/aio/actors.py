"""A name for each task that asks for locks, for as long as it lives.

Tasks come and go by the thousand, and most ask once: a name costs one dict entry and one weak reference. An entry is
found by the task's address and counts only for that very task; entries of the dead are swept when the dict has doubled.
Reentrancy goes by task, too: `reenter` as the recipe has it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable

from .._core.deadlock import LOOSE
from ..recipes.reentrant import reenter

__all__ = ["MIN_SWEEP_COUNT", "Actors", "reenter"]

MIN_SWEEP_COUNT = 64
"""Fewer entries are never worth a sweep."""


class Actors:
    """Who is asking: `make` makes a new name."""

    __slots__ = ("_entries", "_make", "_sweep_at")

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._entries: dict[int, tuple[weakref.ref[asyncio.Task[object]], str, str]] = {}
        self._sweep_at = MIN_SWEEP_COUNT

    def current(self, scoped: bool) -> str:
        """The name of the current task; prefixed with `~` (`LOOSE`) unless the lease ends with an `async with`."""
        task = asyncio.current_task()
        entry = self._entries.get(id(task))
        if entry is None or entry[0]() is not task:
            assert task is not None, "holdfast.aio is used from within a task"
            entry = self._enter(task)
        return entry[1] if scoped else entry[2]

    def _enter(self, task: asyncio.Task[object]) -> tuple[weakref.ref[asyncio.Task[object]], str, str]:
        if len(self._entries) >= self._sweep_at:
            self._entries = {key: entry for key, entry in self._entries.items() if entry[0]() is not None}
            self._sweep_at = max(MIN_SWEEP_COUNT, 2 * len(self._entries))
        name = self._make()
        entry = self._entries[id(task)] = (weakref.ref(task), name, LOOSE + name)
        return entry

    def __len__(self) -> int:
        return len(self._entries)
