"""Threads and tasks of one process meet at the same names, in one line."""

from __future__ import annotations

import asyncio

from ..context import Context
from ..promise import promise


@promise(real_time=True)
async def a_task_waits_for_a_thread(context: Context) -> None:
    """And a thread for a task: the lock goes to and fro, with growing tokens."""
    mine = await context.connect()
    theirs = await context.connect(body="asyncio" if context.body == "sync" else "sync")
    tokens: list[int] = []
    lease = await mine.lock("door").acquire()
    for locks in (theirs, mine, theirs):
        tokens.append(lease.token)
        waiter = context.start(locks.lock("door").acquire())
        await context.queued("door", 1)
        assert await lease.release()
        lease = await waiter
    tokens.append(lease.token)
    assert await lease.release()
    assert tokens == sorted(set(tokens))


@promise(real_time=True)
async def they_exclude_each_other(context: Context) -> None:
    """Over and over, never two inside."""
    coordinators = [await context.connect(body="sync"), await context.connect(body="asyncio")]
    inside: list[int] = []

    async def actor(number: int) -> None:
        for _ in range(3):
            async with coordinators[number % 2].lock("door"):
                inside.append(number)
                await asyncio.sleep(0)
                assert inside == [number]
                inside.clear()

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(actor(number))
