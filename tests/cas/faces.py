"""One counter on every kind of register, in both colours, so that the same promises are asked of each.

1. A `Place` is one value that can be reached through several clients: `counter()` is a new register on it, with a
   client of its own; `fence(token)` claims it as the fences of `holdfast.fenced` do.
2. Each register of `holdfast.cas.aio` has a loop in a thread of its own, so that a test looks the same, and a change
   may use another register.
3. A hash is a counter by its field `n`.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.cas import Stats
from holdfast.cas.update import NO_DEFAULT

Change = Callable[[int], int]


@dataclass
class Counter:
    """The methods of a register, for a whole number, blocking."""

    register: Any
    wait: Callable[[Any], Any]
    field: str | None = None

    @property
    def stats(self) -> Stats:
        stats: Stats = self.register.stats
        return stats

    def read(self) -> Any:
        found = self.wait(self.register.read())
        return self._out(found.value), found.version

    def update(self, change: Change, *, default: Any = NO_DEFAULT, lease: Any = None) -> Any:
        plain = callable(change) and not inspect.iscoroutinefunction(change)

        def of_hash(old: dict[Any, int]) -> Any:
            changed = change(old[self.field])
            return changed if changed is None or inspect.isawaitable(changed) else {self.field: changed}

        whole = change if self.field is None or not plain else of_hash
        begin = default if default is NO_DEFAULT else self._in(default)
        return self._out(self.wait(self.register.update(whole, default=begin, lease=lease)))

    def swap(self, value: int, version: Any, *, lease: Any = None) -> Any:
        return self.wait(self.register.swap(self._in(value), version, lease=lease)).version

    def create(self, value: int, *, lease: Any = None) -> Any:
        return self.wait(self.register.create(self._in(value), lease=lease)).version

    def _in(self, value: int) -> Any:
        return value if self.field is None else {self.field: value}

    def _out(self, value: Any) -> Any:
        return value if self.field is None else value[self.field]


@dataclass
class Place:
    """Where the value of one test is."""

    counter: Callable[..., Counter]
    fence: Callable[[int], object]
    """Claim it with a token, through a fence."""


class Loop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()


@contextmanager
def looping() -> Iterator[Loop]:
    loop = Loop()
    try:
        yield loop
    finally:
        loop.close()


def at_once(answer: Any) -> Any:
    """Of a register for threads: the answer is there already."""
    return answer
