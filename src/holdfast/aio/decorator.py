"""Functions that run under a lock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..recipes.decorator import check_awaited
from .lease import Lease

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")


def hold_for_calls(
    lock: AbstractAsyncContextManager[object], function: Callable[P, Awaitable[R]]
) -> Callable[P, Coroutine[Any, Any, R]]:
    """The function, each call of it under the lock."""
    check_awaited(function, repr(lock))

    @wraps(function)
    async def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        async with lock:
            return await function(*args, **kwargs)

    return locked


def call_body(body: Callable[[Lease], Awaitable[R]], lease: Lease, recipe: str) -> Awaitable[R]:
    """Call the body of a leader."""
    return body(lease)


async def call_policy(policy: Callable[..., object], what: str, *arguments: object) -> object:
    """What a function of the user decides, plain or async; `what` it is given as."""
    decision = policy(*arguments)
    return await decision if isinstance(decision, Awaitable) else decision


async def call_handler(handler: Callable[[A, B], Awaitable[R]], actor: A, message: B) -> R:
    """Call the handler of actors. If it is cancelled, though nobody has cancelled its task, it has failed."""
    try:
        return await handler(actor, message)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the handler waited for something that was cancelled (CancelledError)") from error
