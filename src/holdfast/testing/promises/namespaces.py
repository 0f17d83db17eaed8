"""Namespaces share an engine and nothing else."""

from __future__ import annotations

from ..context import Context
from ..promise import promise


@promise()
async def names_in_two_of_them_are_two_names(context: Context) -> None:
    """Held, seen, evicted and counted apart."""
    one = await context.connect(namespace=f"{context.namespace}-one")
    other = await context.connect(namespace=f"{context.namespace}-other")
    async with one.lock("door") as mine, other.lock("door", timeout=0) as theirs:
        for locks, lease in ((one, mine), (other, theirs)):
            [view] = await locks.survey()
            assert [claim.token for claim in view.holders] == [lease.token]
        if "evict" in one.promises and mine.token != theirs.token:
            assert await other.evict("door", mine.token) is False
        mine.check()
    if "limits" in one.promises:
        assert await one.limiter("mail", "1/h").try_acquire()
        assert await other.limiter("mail", "1/h").try_acquire()
        assert not await one.limiter("mail", "1/h").try_acquire()


@promise()
async def one_is_not_the_prefix_of_another(context: Context) -> None:
    """`a` does not see `ab`, nor `a` the names of `a-b`."""
    short = await context.connect(namespace=f"{context.namespace}-a")
    long = await context.connect(namespace=f"{context.namespace}-ab")
    async with long.lock("b/door"), short.lock("b/door"):
        assert len(await short.survey("b/")) == 1
        assert len(await long.survey()) == 1
