"""`max_hold` bounds a hold, however well renewal goes."""

from __future__ import annotations

from ...errors import LeaseLost
from ..promise import promise
from ..stage import Stage


@promise()
async def it_ends_with_a_reason(stage: Stage) -> None:
    """The holder is told, and `with` raises."""
    locks = await stage.connect()

    async def work() -> None:
        async with locks.lock("door", ttl=stage.short * 3, max_hold=stage.short) as lease:
            assert lease.remaining() <= stage.short
            await lease.lost.wait()

    error = await stage.fails(LeaseLost, work())
    assert error.reason == "max_hold"


@promise()
async def no_renewal_moves_it(stage: Stage) -> None:
    """Neither the keeper's nor one by hand; and the next one gets in though nobody releases."""
    locks = await stage.connect()
    lease = await locks.lock("door", ttl=stage.short, max_hold=stage.short * 1.5).acquire()
    await lease.renew()
    assert lease.remaining() <= stage.short * 1.5
    [before] = (await stage.view("door")).holders
    async with locks.lock("door"):
        [after] = (await stage.view("door")).holders
        assert after.since >= before.since + stage.short * 1.5 - 0.1
        assert lease.reason == "max_hold"
    await lease.release()


@promise()
async def a_shorter_hold_is_not_touched(stage: Stage) -> None:
    """Released before, it was simply held."""
    locks = await stage.connect()
    async with locks.lock("door", max_hold=20) as lease:
        assert lease.remaining() <= 20
    assert lease.reason is None
