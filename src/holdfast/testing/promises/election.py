"""Election: one leader at a time, who has stopped before the next one starts, and whom everybody can see."""

from __future__ import annotations

import asyncio

from ...aio.lease import Lease
from ...errors import Misconfigured
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


@promise()
async def one_leads_and_the_next_follows(context: Context) -> None:
    """In the order of their campaigns; `resign` hands over."""
    one, other = await context.connect(), await context.connect()
    first, second = one.election("boss"), other.election("boss")
    lease = await first.campaign()
    waiting = context.start(second.campaign())
    await context.queued("boss", 1)
    for election in (first, second):
        leader = await election.leader()
        assert leader is not None
        assert leader.token == lease.token
    assert await first.resign() is True
    successor = await waiting
    assert successor.token > lease.token
    leader = await first.leader()
    assert leader is not None
    assert leader.token == successor.token
    assert await first.resign() is False
    assert await second.resign() is True
    assert await first.leader() is None


@promise(needs={"ttl"})
async def a_leader_stops_before_the_next_one_starts(context: Context) -> None:
    """Cut off from the engine, it is told well before anybody else can be elected: a third of the ttl."""
    faults = FaultInjector()
    locks, other = await context.connect(faults=faults), await context.connect()
    ttl = 30.0 if context.virtual else context.seconds(2.4)
    lease = await locks.election("boss", ttl=ttl).campaign()
    successor = context.start(other.election("boss", ttl=ttl).campaign())
    await context.queued("boss", 1)
    faults.cut()
    await lease.lost.wait()
    [leader] = (await context.view("boss")).holders
    assert leader.token == lease.token
    assert leader.remaining > ttl / 6
    assert not successor.done()
    assert (await successor).token > lease.token
    assert await (await successor).release()
    faults.heal()
    await lease.release()


@promise()
async def run_leads_until_the_body_is_done(context: Context) -> None:
    """The body gets the lease, and its result comes back; then nobody leads."""
    locks = await context.connect()
    election = locks.election("boss")

    async def body(lease: Lease) -> int:
        leader = await election.leader()
        assert leader is not None
        assert leader.token == lease.token
        return lease.token

    token = await election.run(body)
    assert token > 0
    assert await election.leader() is None


@promise(needs={"evict"})
async def run_campaigns_again_after_a_loss(context: Context) -> None:
    """A leader that lost its leadership stops, and stands again."""
    locks, operator = await context.connect(), await context.connect()
    tokens: list[int] = []

    async def body(lease: Lease) -> str:
        tokens.append(lease.token)
        if len(tokens) == 1:
            assert await operator.evict("boss", lease.token)
            await lease.lost.wait()
            await asyncio.sleep(0)
            lease.check()
        return "done"

    assert await locks.election("boss", ttl=context.short * 3).run(body) == "done"
    assert len(tokens) == 2
    assert tokens[1] > tokens[0]


@promise()
async def anybody_may_watch(context: Context) -> None:
    """`observe` tells who leads now, and each change."""
    locks, watcher = await context.connect(), await context.connect()
    election = locks.election("boss")
    seen: list[int | None] = []

    async def watch() -> None:
        async for leader in watcher.election("boss").observe():
            seen.append(None if leader is None else leader.token)
            if len(seen) == 3:
                return

    watching = context.start(watch())
    await context.eventually(lambda: seen == [None], "that nobody leads")
    lease = await election.campaign()
    await context.eventually(lambda: len(seen) == 2, "that somebody leads")
    await election.resign()
    await watching
    assert seen == [None, lease.token, None]


@promise()
async def a_long_ttl_can_be_won(context: Context) -> None:
    """Whatever the engine grants at most, a part of it is left for the leader to lead in; or the ttl is refused."""
    locks = await context.connect()
    election = locks.election("boss", ttl=3600.0)
    try:
        lease = await election.campaign(timeout=10.0)
    except Misconfigured:
        return  # said at once, and not advised to be longer
    assert lease.remaining() > 0
    await lease.renew()
    assert lease.remaining() > 0
    assert await election.resign() is True


@promise()
async def who_watches_holds_out_against_an_outage(context: Context) -> None:
    """`observe` goes on for ever: what changed meanwhile is told when the engine is back."""
    faults = FaultInjector()
    locks, watcher = await context.connect(), await context.connect(faults=faults)
    election = locks.election("boss")
    first = await election.campaign()
    seen: list[int | None] = []

    async def watch() -> None:
        async for leader in watcher.election("boss").observe():
            seen.append(None if leader is None else leader.token)
            if len(seen) == 3:
                return

    watching = context.start(watch())
    await context.eventually(lambda: seen == [first.token], "the first leader")
    faults.cut()
    before = faults.points
    await context.eventually(lambda: faults.points > before + 2, "that it looks in vain")
    await election.resign()
    second = await election.campaign()
    assert not watching.done()
    faults.heal()
    await context.eventually(lambda: len(seen) == 2, "the second leader")
    await election.resign()
    async with context.soon():
        await watching
    assert seen == [first.token, second.token, None]
