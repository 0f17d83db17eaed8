"""Who holds what, who waits, since when: as the engine sees it, for anybody who looks."""

from __future__ import annotations

import os
import socket

from ...errors import Misconfigured
from ..context import Context
from ..promise import promise

LAST = chr(0x10FFFF)
"""Nothing comes behind this character, so it must not be taken for the end of a range."""


@promise(needs={"queue"})
async def holders_and_waiters_in_order(context: Context) -> None:
    """Each with owner, token, weight, host, process, since when and for how long."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=60).acquire()
    waiters = []
    for number in range(3):
        waiters.append(context.start(locks.lock("door").acquire()))
        await context.queued("door", number + 1)
    view = await context.view("door")
    [holder] = view.holders
    assert (view.name, view.capacity) == ("door", 1)
    assert (holder.owner, holder.token, holder.weight) == (lease.owner, lease.token, 1)
    assert (holder.host, holder.pid) == (socket.gethostname(), os.getpid())
    assert 0 < holder.remaining <= 60
    assert [waiter.token for waiter in view.waiters] == [None] * 3
    assert holder.since <= view.waiters[0].since <= view.waiters[1].since <= view.waiters[2].since
    ages = [claim.age for claim in (holder, *view.waiters)]
    assert ages == sorted(ages, reverse=True)
    assert ages[-1] >= 0
    await context.eventually(lambda: _older(context, holder.age), "the holder to grow older")
    owners = [waiter.owner for waiter in view.waiters]
    assert await lease.release()
    for owner, waiter in zip(owners, waiters, strict=True):
        assert (await waiter).owner == owner
        assert await (await waiter).release()


async def _older(context: Context, age: float) -> bool:
    [holder] = (await context.view("door")).holders
    return holder.age > age + 0.01


@promise()
async def by_prefix(context: Context) -> None:
    """Only names that begin with it, in order, or the one that it is; the empty prefix is all."""
    locks = await context.connect()
    names = ["orders", "orders/7", "orders/70", "people/7", "Orders/7", "orders%", "orders_", f"orders{LAST}"]
    leases = [await locks.lock(name).acquire() for name in names]
    for prefix in ("", "orders", "orders/", "orders/7", "orders/70", "o", "p", "x", "orders%", "_", "%", LAST):
        found = [view.name for view in await locks.survey(prefix)]
        assert found == sorted(name for name in names if name.startswith(prefix)), prefix
        if prefix:
            exact = [view.name for view in await locks.survey(prefix, exact=True)]
            assert exact == [name for name in names if name == prefix], prefix
    await context.raises(Misconfigured, locks.survey("", exact=True))
    for lease in leases:
        assert await lease.release()


@promise()
async def names_are_any_text(context: Context) -> None:
    """Every script, spaces, quotes and signs that mean something elsewhere; and the longest ones."""
    locks = await context.connect()
    names = [
        "a b",
        "'; DROP TABLE claim; --",
        "näme",
        "名前",
        "a\\b",
        "{hash}:tag",
        "*",
        "?",
        "a:b",
        "é" * 256,
        "n" * 512,
    ]
    leases = [await locks.lock(name).acquire() for name in names]
    assert sorted(view.name for view in await context.survey()) == sorted(names)
    for name, lease in zip(names, leases, strict=True):
        assert await locks.lock(name).try_acquire() is None
        assert str(lease.sequencer()).isascii()
        assert await lease.release()


@promise(needs={"ttl"})
async def only_the_living(context: Context) -> None:
    """A name without a live claim is not there; an expired holder is not shown as one."""
    locks = await context.connect()
    async with locks.lock("released"):
        pass
    silent = await locks.lock("expired", ttl=context.short, renew=False).acquire()
    assert [view.name for view in await context.survey()] == ["expired"]
    await context.free()
    await silent.release()
