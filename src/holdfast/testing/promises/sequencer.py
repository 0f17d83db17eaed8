"""A grant as one line of text, which anybody at the engine can check."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ...errors import Misconfigured
from ...model import Sequencer
from ..context import Context
from ..promise import promise


@promise()
async def good_while_held(context: Context) -> None:
    """Through another coordinator, as text; and not after the release, nor for the next holder's hold."""
    locks, other = await context.connect(), await context.connect()
    async with locks.lock("orders/7") as lease:
        text = str(lease.sequencer())
        assert "\n" not in text
        assert Sequencer.parse(text) == lease.sequencer()
        assert lease.sequencer().token == lease.token
        assert await other.check(text)
        assert await other.check(lease.sequencer())
    assert not await other.check(text)
    async with locks.lock("orders/7"):
        assert not await other.check(text)


@promise(needs={"evict"})
async def not_after_an_expiry_or_an_eviction(context: Context) -> None:
    """As soon as the engine does not count it as held."""
    locks = await context.connect()
    evicted = await locks.lock("evicted", renew=False).acquire()
    assert await locks.evict("evicted", evicted.token)
    assert not await locks.check(evicted.sequencer())
    silent = await locks.lock("silent", ttl=context.short, renew=False, lock_delay=context.short).acquire()

    async def over() -> bool:
        return not await locks.check(silent.sequencer())

    await context.eventually(over, "the expiry")
    await silent.release()
    await evicted.release()


@promise()
async def only_where_it_was_made(context: Context) -> None:
    """Of another engine or cluster it says nothing, and that is an error, not a no."""
    locks = await context.connect()
    async with locks.lock("door") as lease:
        mine = lease.sequencer()
        for other in (
            Sequencer("elsewhere", mine.cluster, mine.name, mine.mode, mine.token),
            Sequencer(mine.backend, "other", mine.name, mine.mode, mine.token),
        ):
            await context.raises(Misconfigured, locks.check(other))
    for text in ("", "hf1:", "hf1:a:b:c:d", "hf1:a:b:c:d:-1", "hf1:a:b:c:d:x", "hf2:a:b:c:d:1", "hf1:a:b:c:d:²"):
        await context.raises(Misconfigured, locks.check(text))


@promise(needs=["counting"], real_time=True)
async def a_live_one_is_confirmed_while_others_overtake(context: Context) -> None:
    """Some skip the line, and take back what they had no room for: no holder is denied meanwhile."""
    one, other, witness = await context.connect(), await context.connect(), await context.connect()
    denied: list[object] = []

    async def take_again_and_again(locks: Coordinator, first: int) -> None:
        for number in range(first, first + 15):
            weight, fair = 1 + (number % 3 == 0), number % 2 == 0
            async with locks.semaphore("pool", permits=3, weight=weight, fair=fair) as lease:
                await asyncio.sleep(0.001)  # others come and go
                if not await witness.check(lease.sequencer()):
                    lease.check()
                    denied.append((lease.token, fair, weight))

    await asyncio.gather(*(take_again_and_again(locks, first) for locks in (one, other) for first in range(8)))
    assert denied == []
