"""Actors that wait for each other in a circle are told, the youngest of them, with names; and nobody else is."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ...errors import DeadlockDetected
from ..context import Context
from ..promise import promise


async def crossed(context: Context, coordinators: list[Coordinator], names: str) -> list[DeadlockDetected]:
    """Each actor holds one name and then wants the next one's, all at the same time. Answers with who was told."""
    holding = [asyncio.Event() for _ in names]
    told: list[DeadlockDetected] = []

    async def actor(number: int) -> None:
        locks = coordinators[number % len(coordinators)]
        async with locks.lock(names[number]):
            holding[number].set()
            for event in holding:
                await event.wait()
            try:
                async with locks.lock(names[(number + 1) % len(names)], timeout=30):
                    pass
            except DeadlockDetected as error:
                told.append(error)

    async with asyncio.TaskGroup() as group:
        for number in range(len(names)):
            group.create_task(actor(number))
    return told


@promise(needs={"deadlock"})
async def two_that_cross(context: Context) -> None:
    """One is told, who holds and waits for what; the other one gets its way."""
    locks = await context.connect()
    [error] = await crossed(context, [locks], "ab")
    assert error.name in "ab"
    assert len(error.circle) == 2
    text = str(error)
    assert "'a'" in text
    assert "'b'" in text


@promise(needs={"deadlock"})
async def across_coordinators(context: Context) -> None:
    """As between processes: nobody sees more than what the engine shows."""
    [error] = await crossed(context, [await context.connect(), await context.connect()], "ab")
    assert len(error.circle) == 2


@promise(needs={"deadlock"})
async def a_circle_of_four(context: Context) -> None:
    """One gives way, and all others get theirs."""
    [error] = await crossed(context, [await context.connect(), await context.connect()], "abcd")
    assert len(error.circle) == 4


@promise(needs={"deadlock"})
async def oneself(context: Context) -> None:
    """Who asks inside for what it holds outside would wait for itself."""
    locks = await context.connect()

    async def actor() -> None:
        async with locks.lock("a"):
            async with locks.lock("a", timeout=20):
                raise AssertionError("a mutex was entered twice")

    error = await context.raises(DeadlockDetected, actor())
    assert error.name == "a"


@promise(needs={"deadlock", "shared"})
async def an_upgrade(context: Context) -> None:
    """Two readers that both want to write, and keep reading meanwhile."""
    locks = await context.connect()
    reading = [asyncio.Event(), asyncio.Event()]
    told: list[DeadlockDetected] = []

    async def actor(number: int) -> None:
        async with locks.rwlock("doc").read():
            reading[number].set()
            await reading[1 - number].wait()
            try:
                async with locks.rwlock("doc", timeout=30).write():
                    raise AssertionError("a writer beside readers")
            except DeadlockDetected as error:
                told.append(error)

    async with asyncio.TaskGroup() as group:
        group.create_task(actor(0))
        group.create_task(actor(1))
    assert told


@promise(needs={"deadlock"})
async def a_queue_is_no_circle(context: Context) -> None:
    """Actors that hold something and wait for somebody who waits for nobody are only waiting."""
    locks = await context.connect()
    holder = await locks.lock("z").acquire()

    async def actor(name: str) -> None:
        async with locks.lock(name):
            async with locks.lock("z"):
                pass

    waiters = []
    for number, name in enumerate("abc"):
        waiters.append(context.start(actor(name)))
        await context.queued("z", number + 1)
    assert await holder.release()
    await asyncio.gather(*waiters)


@promise(needs={"deadlock"})
async def many_at_once_against_one_by_one(context: Context) -> None:
    """`lock_all` beside actors that nest: whatever circle arises is named, and everybody ends."""
    locks = await context.connect()
    ended: list[str] = []

    async def nested(first: str, second: str) -> None:
        try:
            async with locks.lock(first):
                await asyncio.sleep(0)
                async with locks.lock(second):
                    pass
        except DeadlockDetected:
            pass  # told, which is what is promised
        ended.append(first)

    async def together() -> None:
        try:
            async with locks.lock_all(["a", "b"]):
                pass
        except DeadlockDetected:
            pass  # told, which is what is promised
        ended.append("ab")

    for _ in range(3):
        async with asyncio.TaskGroup() as group:
            group.create_task(nested("a", "b"))
            group.create_task(together())
            group.create_task(nested("b", "a"))
    assert len(ended) == 9
