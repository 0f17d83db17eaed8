"""Small things for tests of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

E = TypeVar("E", bound=BaseException)


async def ends_with(kind: type[E], awaitable: Awaitable[object]) -> E:
    """Await something that must fail, in this very task, and see how."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


async def until(look: Callable[[], Awaitable[Any]], pause: float = 0.0) -> None:
    """Look until the answer is true."""
    for _ in range(10_000):
        if await look():
            return
        await asyncio.sleep(pause)
    raise AssertionError("waited in vain")
