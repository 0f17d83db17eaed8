"""The limiter of tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..recipes.decorator import check_awaited
from ..recipes.limiter import Rate, pass_in_turn, pass_now, used

if TYPE_CHECKING:
    from .coordinator import Coordinator

P = ParamSpec("P")
R = TypeVar("R")


class Limiter:
    """So many per period, for all processes together.

    >>> import asyncio, holdfast.aio
    >>> async def main() -> list[bool]:
    ...     async with holdfast.aio.connect("memory://tasks") as locks:
    ...         mail = locks.limiter("mail/user7", "2/min", burst=2)
    ...         return [await mail.try_acquire() for _ in range(3)]
    >>> asyncio.run(main())
    [True, True, False]
    """

    def __init__(self, coordinator: Coordinator, rate: Rate) -> None:
        self._coordinator = coordinator
        self._rate = rate

    async def try_acquire(self, cost: int = 1) -> bool:
        """Whether it may pass now."""
        return await self._coordinator._run(pass_now(self._coordinator._core.backend, self._rate, cost))

    async def acquire(self, timeout: float | None = None, cost: int = 1) -> None:
        """Wait for its turn; raises `NotAcquired` at once if that is further away than `timeout`."""
        await self._coordinator._run(pass_in_turn(self._coordinator._core.backend, self._rate, cost, timeout))

    async def used(self) -> float:
        """How much of the burst is spent now, from 0; more than all of it, if times ahead are booked.

        Asking spends nothing.
        """
        return await self._coordinator._run(used(self._coordinator._core.backend, self._rate))

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Wait for a turn before each call of a coroutine function."""
        check_awaited(function, repr(self))

        @wraps(function)
        async def limited(*args: P.args, **kwargs: P.kwargs) -> R:
            await self.acquire()
            return await function(*args, **kwargs)

        return limited

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._rate.name!r}>"
