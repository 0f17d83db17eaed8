"""What a type checker must see in a user's program with asyncio. Checked by `make check`, never run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import assert_type

import holdfast
from holdfast import ClaimView, LockView, MemberView, Promises, Sequencer, State
from holdfast.aio import Coordinator, Lease


async def connecting() -> None:
    async with holdfast.aio.connect("sqlite:///locks.db", ttl=10, require=["fencing"]) as locks:
        assert_type(locks, Coordinator)
    locks = await holdfast.aio.connect()
    assert_type(locks, Coordinator)
    await locks.close()


async def asking(locks: Coordinator) -> None:
    lock = locks.lock("a", ttl=10, timeout=5, max_hold=60)
    assert_type(await lock.acquire(timeout=None), Lease)
    assert_type(await lock.try_acquire(), Lease | None)
    async with lock as lease:
        assert_type(lease, Lease)
    async with await lock.acquire() as lease:
        assert_type(lease, Lease)


async def every_recipe_gives_a_lease(locks: Coordinator) -> None:
    assert_type(await locks.reentrant("a").acquire(), Lease)
    assert_type(await locks.rwlock("a").read().acquire(), Lease)
    assert_type(await locks.rwlock("a").write().try_acquire(), Lease | None)
    assert_type(await locks.semaphore("a", permits=3).acquire(), Lease)
    async with locks.lock_all(["a", "b"], timeout=5) as leases:
        assert_type(leases["a"], Lease)


async def electing(locks: Coordinator) -> None:
    election = locks.election("scheduler")
    assert_type(await election.campaign(timeout=5), Lease)
    assert_type(await election.leader(), ClaimView | None)
    assert_type(election.observe(), AsyncIterator[ClaimView | None])
    assert_type(await election.resign(), bool)

    async def body(lease: Lease) -> int:
        return lease.token

    assert_type(await election.run(body), int)


async def partitioning(locks: Coordinator) -> None:
    async with locks.partitions(
        "ingest", shards=64, weight=2, moves="5/s", on_assigned=lambda shard, lease: None
    ) as owned:
        assert_type(owned.shard("key"), int)
        assert_type(await owned.owner("key"), ClaimView | None)
        assert_type(await owned.members(), tuple[MemberView, ...])
        assert_type(await owned.wait_for_change(timeout=1), frozenset[int])
        assert_type(list(owned), list[int])
        assert_type(owned[3], Lease)
        with owned.using(3) as lease:
            assert_type(lease, Lease)
    await owned.run()


async def acting(locks: Coordinator) -> None:
    async def handle(actor: holdfast.aio.Actor, message: int) -> int:
        assert_type(actor.lease, Lease)
        return message

    async with locks.actors("accounts", handle, concurrency=4) as accounts:
        assert_type(await accounts.tell("alice", 1, message_id="a"), str)
        await accounts.ask("alice", 1, timeout=5)
        assert_type(await accounts.look("alice"), holdfast.ActorView | None)
        assert_type(await accounts.dead_letters(), list[holdfast.DeadLetter])
        assert_type(await accounts.retry("alice", "a"), bool)


async def limiting(locks: Coordinator) -> None:
    limiter = locks.limiter("mail", "5/s", burst=10)
    assert_type(await limiter.try_acquire(), bool)
    await limiter.acquire(timeout=1)


async def holding(lease: Lease) -> None:
    assert_type(lease.token, int)
    assert_type(lease.remaining(), float)
    assert_type(lease.state, State)
    assert_type(lease.lost, asyncio.Event)
    assert_type(lease.reason, str | None)
    assert_type(await lease.release(), bool)
    assert_type(lease.sequencer(), Sequencer)
    lease.check()
    await lease.renew()


async def looking_after_them(locks: Coordinator, lease: Lease) -> None:
    for view in await locks.survey("orders/"):
        assert_type(view, LockView)
    assert_type(await locks.evict("a", 7), bool)
    assert_type(await locks.check(lease.sequencer()), bool)
    assert_type(locks.promises, Promises)


def decorating_keeps_a_coroutine_function(locks: Coordinator) -> None:
    @locks.lock("nightly")
    async def nightly(day: str) -> int:
        return len(day)

    # asyncio.run and create_task take a coroutine, and no lesser awaitable
    assert_type(asyncio.run(nightly("monday")), int)
    asyncio.run(nightly(1))  # type: ignore[arg-type]

    @locks.limiter("mail", "5/s")
    async def mail(to: str) -> bool:
        return bool(to)

    assert_type(asyncio.run(mail("you")), bool)


async def misuse_is_seen(locks: Coordinator) -> None:
    locks.lock("a", time_out=5)  # type: ignore[call-arg]
    locks.semaphore("a")  # type: ignore[call-arg]
    with locks.lock("a"):  # type: ignore[attr-defined]
        pass

    @locks.lock("a")  # type: ignore[arg-type]
    def not_a_coroutine() -> int:
        return 1
