"""`hold_at_least` keeps a name closed until a minimum has passed, even when its holder lets go early."""

from __future__ import annotations

from ...model import State
from ..context import Context
from ..faults import Fault, FaultInjector
from ..promise import promise


@promise(needs={"linger"})
async def an_early_release_lingers(context: Context) -> None:
    """The holder is done at once; the next one waits for the rest, on the engine's clock."""
    locks = await context.connect()
    lease = await locks.lock("job", hold_at_least=context.short).acquire()
    [before] = (await context.view("job")).holders
    assert await lease.release() is True
    assert lease.state is State.RELEASED
    assert await locks.lock("job").try_acquire() is None
    async with locks.lock("job"):
        [after] = (await context.view("job")).holders
        assert after.since >= before.since + context.short * 0.95


@promise(needs={"linger"})
async def a_late_release_does_not(context: Context) -> None:
    """After the minimum, a release opens the name at once."""
    locks = await context.connect()
    lease = await locks.lock("job", hold_at_least=context.short / 4).acquire()
    since = lease.remaining()
    await context.eventually(lambda: lease.remaining() < since - context.short / 4, "the minimum to pass")
    assert await lease.release()
    assert await (await locks.lock("job", timeout=0).acquire()).release()


@promise(needs={"linger"})
async def a_release_that_has_to_be_repeated_lingers_too(context: Context) -> None:
    """The engine was out of reach at the release: told later, it still keeps the name closed until then."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    lease = await locks.lock("job", ttl=context.short * 5, hold_at_least=context.short * 2).acquire()
    [before] = (await context.view("job")).holders
    faults.at(0, Fault.REFUSED)
    await lease.release()
    async with locks.lock("job"):
        [after] = (await context.view("job")).holders
        assert after.since >= before.since + context.short * 1.9


@promise(needs={"linger"})
async def who_let_go_does_not_hold(context: Context) -> None:
    """While it lingers, the sequencer of the released lease is not good any more."""
    locks = await context.connect()
    lease = await locks.lock("job", hold_at_least=context.short).acquire()
    sequencer = lease.sequencer()
    assert await locks.check(sequencer)
    await lease.release()
    assert not await locks.check(sequencer)
    assert not await locks.evict("other", lease.token)
