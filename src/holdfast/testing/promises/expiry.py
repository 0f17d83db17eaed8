"""A hold that is not renewed ends with its ttl: not later, not before, and each by itself."""

from __future__ import annotations

from ...errors import LeaseLost
from ...model import State
from ..context import Context
from ..promise import promise


@promise(needs={"ttl"})
async def a_silent_holder_is_succeeded(context: Context) -> None:
    """Whoever waits is granted once the ttl has passed on the engine's clock, without anybody's release."""
    locks = await context.connect()
    silent = await locks.lock("door", ttl=context.short, renew=False).acquire()
    [before] = (await context.view("door")).holders
    async with locks.lock("door") as successor:
        [after] = (await context.view("door")).holders
        assert after.token == successor.token
        assert after.since >= before.since + context.short
    assert silent.state is State.LOST
    assert await silent.release() is False


@promise(needs={"ttl"})
async def the_holder_knows_before_the_successor_begins(context: Context) -> None:
    """By the time that somebody else holds, the old lease says that it is over, and why."""
    locks = await context.connect()
    silent = await locks.lock("door", ttl=context.short, renew=False).acquire()
    assert 0 < silent.remaining() < context.short
    async with locks.lock("door"):
        assert silent.remaining() == 0
        assert (silent.state, silent.reason) == (State.LOST, "expired")
        error = await context.raises(LeaseLost, silent.renew())
        assert error.reason == "expired"
    await silent.release()


@promise(needs={"shared", "ttl"})
async def a_silent_reader_pins_nobody(context: Context) -> None:
    """Each reader has an expiry of its own: one that fell silent does not live on because others renew."""
    locks = await context.connect()
    silent = await locks.rwlock("doc", ttl=context.short, renew=False).read().acquire()
    lively = await locks.rwlock("doc").read().acquire()

    async def alone() -> bool:
        return [claim.token for claim in (await context.view("doc")).holders] == [lively.token]

    await context.eventually(alone, "the silent reader to be gone")
    assert await lively.release()
    async with locks.rwlock("doc", timeout=context.short).write():
        pass
    await silent.release()


@promise(needs={"ttl"})
async def a_contended_ttl_is_a_whole_ttl(context: Context) -> None:
    """Who had to wait holds for as long as who had not, also without renewal."""
    locks = await context.connect()
    first = await locks.lock("door").acquire()
    waiter = context.start(locks.lock("door", ttl=60, renew=False).acquire())
    await context.queued("door", 1)
    assert await first.release()
    second = await waiter
    assert second.remaining() > 50
    assert await second.release()
