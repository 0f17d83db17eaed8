"""A clock that the test moves.

While it is installed, every driver of this process and every engine that lives in it (memory, SQLite) reads this clock
instead of the machine's. With asyncio, `run` goes further: whenever the program would wait, the clock jumps to the end
of the wait, so an hour passes in a millisecond and every moment is exact. With threads, waits stay real, and the
clock moves when `advance` is called: enough to let a lease run out, not to have it renewed.

>>> from holdfast.testing import FakeClock, memory_engine
>>> from holdfast import Coordinator
>>> clock = FakeClock()
>>> with clock.installed(), Coordinator(memory_engine(), 30.0, None, None) as locks:
...     lease = locks.lock("orders/7", ttl=10).acquire()
...     clock.advance(11)
...     lease.state.value, lease.reason
('lost', 'expired')
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from .. import clock as machine

T = TypeVar("T")

READERS = (
    "aio.driver",
    "backends.sqlite.aio_wire",
    "backends.sqlite.file",
    "backends.sqlite.store",
    "base_lease",
    "sync.driver",
)
"""Modules that read the clock; loaded before it is replaced, so that none of them keeps the machine's."""

EPOCH_US = 1_000_000_000_000_000
"""The calendar of a new clock: September 2001. The real one is far ahead of it, as after a clock was set back."""


TURNS_COUNT = 100_000
"""So many turns of the loop without a wait, and nobody is going to wait any more."""


class FakeClock:
    """Time for tests: `now` in seconds, moved by `advance`."""

    def __init__(self, start: float = 1000.0) -> None:
        self._start = start
        self._now = start

    def now(self) -> float:
        """The time of this clock, in seconds."""
        return self._now

    def calendar_us(self) -> int:
        """The calendar of this clock, in microseconds."""
        return EPOCH_US + int((self._now - self._start) * 1e6)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds

    @contextmanager
    def installed(self) -> Iterator[FakeClock]:
        """Make it the clock of this process."""
        for name in READERS:
            import_module(f"holdfast.{name}")
        replaced: dict[Callable[..., object], Callable[..., object]] = {
            machine.now: self.now,
            machine.calendar_us: self.calendar_us,
        }
        undo: list[tuple[Any, str, object]] = []
        for module in [module for name, module in sys.modules.items() if name.startswith("holdfast.")]:
            for attribute, value in list(vars(module).items()):
                if callable(value) and value in replaced:
                    undo.append((module, attribute, value))
                    setattr(module, attribute, replaced[value])
        try:
            yield self
        finally:
            for module, attribute, value in undo:
                setattr(module, attribute, value)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run an asyncio program in this clock's time: nothing waits, the clock jumps instead."""
        with self.installed(), asyncio.Runner(loop_factory=lambda: _JumpingLoop(self)) as runner:
            return runner.run(main)


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; if nothing is, the time has passed. With no timer at all, wait for the world outside."""
        ready = super().select(None if timeout is None else 0)
        if ready or timeout is None:
            self._turns = 0
        elif timeout > 0:
            self._turns = 0
            self._clock.advance(timeout)
        else:
            self._turns += 1
            if self._turns > TURNS_COUNT:
                raise RuntimeError("the program turns on the spot: it never waits, so its time cannot pass")
        return ready


class _JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self._clock = clock

    def time(self) -> float:
        return self._clock.now()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Without the limit that newer versions of Python set: threads end in real time, which is not this clock's."""
        await super().shutdown_default_executor()
