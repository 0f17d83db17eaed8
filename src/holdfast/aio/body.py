"""The body of an `async with`: cancelled when its lease is lost. (The body of a thread is told; see `sync/body.py`.)

`LeaseLost` then comes out of the `async with`. A cancellation from outside stays one: asyncio counts the requests to
cancel a task, and ours is taken back before we raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from .._core.lease import Hold
from ..base_lease import BaseLease, BaseLeases, first_lost, still_inside


class Body:
    """The body that the current task is entering."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "async with runs in a task"
        self.task = task
        self._requests = task.cancelling()
        self._left = False
        self._struck = False

    def strike_soon(self) -> None:
        """Cancel the body: at the loop's next turn, when its task is not running."""
        self.task.get_loop().call_soon(self._strike)

    def _strike(self) -> None:
        if not self._left and not self._struck:
            self._struck = True
            self.task.cancel("the lease was lost")

    def end(self) -> None:
        """It has ended: a loss from now on does not cancel its task."""
        self._left = True

    async def leave(
        self, error: BaseException | None, holds: Sequence[Hold], release: Callable[[], Awaitable[bool]]
    ) -> None:
        """Let go, and raise `LeaseLost` if that is what ended the body, or would go unnoticed."""
        self.end()
        requests = self.task.uncancel() if self._struck else self.task.cancelling()
        cancelled = isinstance(error, asyncio.CancelledError)
        inside = still_inside(holds)
        held = await release()
        if held or not inside or (cancelled and requests > self._requests):
            return
        if error is None or (cancelled and self._struck):
            raise first_lost(inside) from error


class ScopedLease(BaseLease):
    """A lease as a context: its bodies are cancelled when it is lost."""

    __slots__ = ("_bodies",)

    _bodies: list[Body]

    async def __aenter__(self) -> Self:
        self.check()
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self._bodies.pop().leave(error, [self._hold], self.release)

    async def release(self) -> bool:
        """Let go. True if it was held until now."""
        raise NotImplementedError

    def _enter(self) -> asyncio.Task[object]:
        """Begin a body; answers with the task that it runs in."""
        body = Body()
        self._bodies.append(body)
        return body.task

    def _leave(self) -> None:
        """End a body without letting go."""
        self._bodies.pop().end()

    def _cancel_bodies(self) -> None:
        for body in self._bodies:
            body.strike_soon()


L = TypeVar("L", bound=ScopedLease)


class ScopedLeases(BaseLeases[L]):
    """Several leases as one context: its body is cancelled when one of them is lost."""

    _body: Body

    async def __aenter__(self) -> Self:
        self.check()
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for lease in self.values():
            lease._bodies.remove(self._body)
        await self._body.leave(error, self._holds, self.release)

    async def release(self) -> bool:
        """Let go of all. True if all were held until now."""
        raise NotImplementedError

    def _enter(self) -> asyncio.Task[object]:
        """Begin a body; answers with the task that it runs in."""
        self._body = Body()
        for lease in self.values():
            lease._bodies.append(self._body)
        return self._body.task
