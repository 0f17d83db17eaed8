"""The body of an `async with`: cancelled when its lease is lost.

`LeaseLost` then comes out of the `async with`. A cancellation from outside stays one: asyncio counts the requests to
cancel a task, and ours is taken back before we raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from .._core.lease import Hold
from ..base_lease import first_lost, still_inside


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

    async def leave(
        self, error: BaseException | None, holds: Sequence[Hold], release: Callable[[], Awaitable[bool]]
    ) -> None:
        """Let go, and raise `LeaseLost` if that is what ended the body, or would go unnoticed."""
        self._left = True
        requests = self.task.uncancel() if self._struck else self.task.cancelling()
        cancelled = isinstance(error, asyncio.CancelledError)
        inside = still_inside(holds)
        held = await release()
        if held or not inside or (cancelled and requests > self._requests):
            return
        if error is None or (cancelled and self._struck):
            raise first_lost(inside) from error
