"""How a member of a partition runs beside its user's tasks, waits, and calls hooks: by tasks of the loop.

A hook is a task of its own. At its deadline it is cancelled, and nobody waits for it any longer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Never

from ..observe.log_exception import log_exception
from .driver import to_the_end

__all__ = ["Background", "HookCall", "HookCalls", "to_the_end", "wait_event", "wait_first"]


class HookCall:
    """A hook that is being called, after another one for the same shard has ended.

    It is not called if `when` does not hold by then: it has failed, too.
    """

    def __init__(
        self,
        call: Callable[[], object],
        after: HookCall | None,
        when: Callable[[], bool],
        ended: Callable[[], None],
    ) -> None:
        self.failed = False
        self.after = after
        """The one before it, until this one has begun."""
        self._begun = False
        self._task = asyncio.ensure_future(self._run(call, when))
        self._task.set_name("holdfast-hook")
        self._task.add_done_callback(lambda _: ended())

    @property
    def done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._task.done()

    def abandon(self) -> None:
        """Its time is over. One that has not begun is not forgotten: it ends what another one has begun."""
        if self._begun:
            self._task.cancel()

    def skip(self) -> bool:
        """Do not call it. False: that has begun, or is over."""
        if self._begun or self.done:
            return False
        self.failed = True
        self._task.cancel()
        return True

    async def wait(self) -> None:
        """Until it has ended."""
        await asyncio.wait((self._task,))

    async def _run(self, call: Callable[[], object], when: Callable[[], bool]) -> None:
        if self.after is not None:
            await self.after.wait()
            self.after = None  # it refers to its own, and so on
        if not when():
            self.failed = True
            return
        self._begun = True
        try:
            result = call()
            if inspect.isawaitable(result):
                await result
        except asyncio.CancelledError:
            self.failed = True
            raise
        except Exception:  # noqa: BLE001  it is not our code
            self.failed = True
            log_exception("the hook %r raised", call)


class HookCalls:
    """Calls hooks."""

    def start(
        self,
        call: Callable[[], object],
        ended: Callable[[], None],
        after: HookCall | None,
        when: Callable[[], bool],
    ) -> HookCall:
        """Begin to call a hook; `ended` is called when that is over."""
        return HookCall(call, after, when, ended)


class Background:
    """Something that goes on beside its user."""

    def __init__(self, work: Callable[[], Coroutine[object, Never, None]], name: str) -> None:
        self._task = asyncio.ensure_future(work())
        self._task.set_name(name)

    def abandon(self) -> None:
        """It is no longer wanted: a task is cancelled."""
        self._task.cancel()

    async def wait(self) -> None:
        """Wait for its end, however it has ended."""
        await asyncio.wait((self._task,))

    async def join(self) -> None:
        """Wait for its end; raises what it has raised."""
        await self.wait()
        self._task.result()


async def wait_event(event: asyncio.Event, timeout: float | None) -> None:
    """Until it is set, or the time is over."""
    try:
        await asyncio.wait_for(event.wait(), timeout)
    except TimeoutError:
        pass


async def wait_first(stop: asyncio.Event | None, wake: asyncio.Event, timeout: float) -> None:
    """Until one of them is set, or the time is over."""
    waits = [asyncio.ensure_future(event.wait()) for event in (stop, wake) if event is not None]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


async def finish(work: Callable[[], Coroutine[object, Never, None]]) -> None:
    """Do it to its end, whatever happens to this task; then let a cancellation through."""
    await to_the_end(work())
