"""`hold_at_least` keeps a name closed until a minimum has passed, even when its holder lets go early."""

from __future__ import annotations

from ...model import State
from ..promise import promise
from ..stage import Stage
from ..trouble import Fault, Trouble


@promise()
async def an_early_release_lingers(stage: Stage) -> None:
    """The holder is done at once; the next one waits for the rest, on the engine's clock."""
    locks = await stage.connect()
    lease = await locks.lock("job", hold_at_least=stage.short).acquire()
    [before] = (await stage.view("job")).holders
    assert await lease.release() is True
    assert lease.state is State.RELEASED
    assert await locks.lock("job").try_acquire() is None
    async with locks.lock("job"):
        [after] = (await stage.view("job")).holders
        assert after.since >= before.since + stage.short * 0.95


@promise()
async def a_late_release_does_not(stage: Stage) -> None:
    """After the minimum, a release opens the name at once."""
    locks = await stage.connect()
    lease = await locks.lock("job", hold_at_least=stage.short / 4).acquire()
    since = lease.remaining()
    await stage.eventually(lambda: lease.remaining() < since - stage.short / 4, "the minimum to pass")
    assert await lease.release()
    assert await (await locks.lock("job", timeout=0).acquire()).release()


@promise()
async def a_release_that_has_to_be_repeated_lingers_too(stage: Stage) -> None:
    """The engine was out of reach at the release: told later, it still keeps the name closed until then."""
    trouble = Trouble()
    locks = await stage.connect(trouble=trouble)
    lease = await locks.lock("job", ttl=stage.short * 5, hold_at_least=stage.short * 2).acquire()
    [before] = (await stage.view("job")).holders
    trouble.at(0, Fault.REFUSED)
    await lease.release()
    async with locks.lock("job"):
        [after] = (await stage.view("job")).holders
        assert after.since >= before.since + stage.short * 1.9


@promise()
async def who_let_go_does_not_hold(stage: Stage) -> None:
    """While it lingers, the sequencer of the released lease is not good any more."""
    locks = await stage.connect()
    lease = await locks.lock("job", hold_at_least=stage.short).acquire()
    sequencer = lease.sequencer()
    assert await locks.check(sequencer)
    await lease.release()
    assert not await locks.check(sequencer)
    assert not await locks.evict("other", lease.token)
