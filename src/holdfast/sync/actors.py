"""A name for each thread that asks for locks, for as long as it lives; and what reentrancy goes by."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from .._core.coordinator_core import CoordinatorCore
from .._core.deadlock import LOOSE
from .._core.flow import Flow
from .._core.lease import Hold
from ..model import LockSpec
from ..recipes import reentrant


class Actors:
    """Who is asking: `make` makes a new name."""

    __slots__ = ("_local", "_make")

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._local = threading.local()

    def current(self, scoped: bool) -> str:
        """The name of the current thread; prefixed with `~` (`LOOSE`) unless the lease ends with a `with` statement."""
        try:
            names: tuple[str, str] = self._local.names
        except AttributeError:
            name = self._make()
            names = self._local.names = (LOOSE + name, name)
        return names[scoped]


def reenter(core: CoordinatorCore, spec: LockSpec, timeout: float | None, actor: str) -> Flow[Hold]:
    """By thread; where an event loop runs in it, by task: they take turns in one thread, and exclude each other."""
    asyncio = sys.modules.get("asyncio")
    in_a_loop = asyncio is not None and asyncio._get_running_loop() is not None
    task = asyncio.current_task() if asyncio is not None and in_a_loop else None
    return reentrant.reenter(core, spec, timeout, actor, task)
