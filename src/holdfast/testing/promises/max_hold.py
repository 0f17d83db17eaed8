"""`max_hold` bounds a hold, however well renewal goes."""

from __future__ import annotations

from ...errors import LeaseLost
from ..context import Context
from ..promise import promise


@promise()
async def it_ends_with_a_reason(context: Context) -> None:
    """The holder is told, and `with` raises."""
    locks = await context.connect()

    async def work() -> None:
        async with locks.lock("door", ttl=context.short * 3, max_hold=context.short) as lease:
            assert lease.remaining() <= context.short
            await lease.lost.wait()

    error = await context.raises(LeaseLost, work())
    assert error.reason == "max_hold"


@promise(needs={"ttl"})
async def no_renewal_moves_it(context: Context) -> None:
    """Neither the keeper's nor one by hand; and the next one gets in though nobody releases."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=context.short, max_hold=context.short * 1.5).acquire()
    await lease.renew()
    assert lease.remaining() <= context.short * 1.5
    [before] = (await context.view("door")).holders
    async with locks.lock("door"):
        [after] = (await context.view("door")).holders
        assert after.since >= before.since + context.short * 1.5 - 0.1
        assert lease.reason == "max_hold"
    await lease.release()


@promise()
async def a_shorter_hold_is_not_touched(context: Context) -> None:
    """Released before, it was simply held."""
    locks = await context.connect()
    async with locks.lock("door", max_hold=20) as lease:
        assert lease.remaining() <= 20
    assert lease.reason is None
