"""Every recipe is a decorator: held for the call, and only for the call."""

from __future__ import annotations

import asyncio

from ...aio.lock import Lock
from ...aio.multi import LockAll
from ..context import Context
from ..promise import promise


@promise(needs={"shared", "counting"})
async def each_recipe_holds_for_the_call(context: Context) -> None:
    """Arguments and results pass, the function keeps its name, and errors come out."""
    locks = await context.connect()
    recipes: dict[str, Lock | LockAll] = {
        "lock": locks.lock("lock"),
        "reentrant": locks.reentrant("reentrant"),
        "read": locks.rwlock("read").read(),
        "write": locks.rwlock("write").write(),
        "permit": locks.semaphore("permit", permits=2),
        "several": locks.lock_all(["several", "more"]),
    }
    for name, recipe in recipes.items():

        async def work(number: int, *, fail: bool = False, name: str = name) -> int:
            """What it does."""
            assert len((await context.view(name)).holders) == 1
            if fail:
                raise KeyError(name)
            return number + 1

        decorated = recipe(work)
        assert (decorated.__name__, decorated.__doc__) == ("work", "What it does.")
        assert await decorated(1) == 2
        assert await decorated(2) == 3
        await context.raises(KeyError, decorated(3, fail=True))
        await context.free(name)


@promise(needs={"limits"})
async def a_limiter_too(context: Context) -> None:
    """Each call waits for its turn."""
    locks = await context.connect()
    limiter = locks.limiter("mail", "2/h", burst=2)

    @limiter
    async def send(to: str) -> str:
        return f"to {to}"

    assert await send("you") == "to you"
    assert await limiter.try_acquire()
    assert not await limiter.try_acquire()


@promise()
async def calls_exclude_each_other(context: Context) -> None:
    """One decorated function, called by many at once."""
    locks = await context.connect()
    inside: list[int] = []

    @locks.lock("door")
    async def work(number: int) -> None:
        inside.append(number)
        await asyncio.sleep(0)
        assert inside == [number]
        inside.clear()

    tasks = [context.start(work(number)) for number in range(5)]
    for task in tasks:
        await task
