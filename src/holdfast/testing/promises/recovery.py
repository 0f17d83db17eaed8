"""A name whose holder did not end cleanly is put right by the next one, before anything else; until then it shows."""

from __future__ import annotations

import asyncio

from ...aio.lease import Lease
from ...errors import LeaseLost, Misconfigured
from ...model import Predecessor
from ..context import Context
from ..promise import promise


class Broken(Exception):
    """What a recovery raises here."""


@promise(needs={"predecessor"})
async def before_the_body(context: Context) -> None:
    """Called once, with the lease and the predecessor, after an unclean end and not after a clean one."""
    locks, other = await context.connect(), await context.connect()
    calls: list[tuple[int, Predecessor]] = []

    def recover(lease: Lease, predecessor: Predecessor) -> None:
        lease.check()
        calls.append((lease.token, predecessor))

    async with locks.lock("door", recover=recover):
        pass
    async with other.lock("door", recover=recover):
        pass
    assert calls == []
    silent = await locks.lock("door", ttl=context.short, renew=False, recover=recover).acquire()
    async with other.lock("door", recover=recover) as lease:
        assert [(token, one.token, one.owner) for token, one in calls] == [(lease.token, silent.token, silent.owner)]
        assert (await context.view("door")).unrecovered is None
    async with locks.lock("door", recover=recover):
        assert len(calls) == 1
    await silent.release()


@promise(needs={"predecessor", "evict"})
async def one_that_fails_leaves_it_to_the_next(context: Context) -> None:
    """Its error comes out, the lock is free, and the name stays unrecovered, whoever holds it meanwhile."""
    locks, other = await context.connect(), await context.connect()
    calls: list[Predecessor] = []

    def fail(lease: Lease, predecessor: Predecessor) -> None:
        raise Broken

    def recover(lease: Lease, predecessor: Predecessor) -> None:
        calls.append(predecessor)

    lease = await locks.lock("door", recover=recover).acquire()
    assert await other.evict("door", lease.token)
    left = Predecessor(lease.token, lease.owner, "evicted")
    await context.raises(Broken, other.lock("door", recover=fail).acquire())
    assert (await context.view("door")).unrecovered == left
    async with locks.lock("door", timeout=5.0) as plain:
        assert plain.predecessor == left
    assert (await context.view("door")).unrecovered == left
    async with other.lock("door", recover=recover):
        assert calls == [left]
        assert (await context.view("door")).unrecovered is None
    assert (await context.view("door")).unrecovered is None
    await lease.release()


@promise(needs={"predecessor", "evict"})
async def nothing_is_unrecovered_without_it(context: Context) -> None:
    """A name that nobody uses with `recover` is only ever told about, and is left like any other."""
    locks, other = await context.connect(), await context.connect()
    lease = await locks.lock("door").acquire()
    assert await other.evict("door", lease.token)
    assert (await context.view("door")).unrecovered is None
    async with other.lock("door"):
        assert (await context.view("door")).unrecovered is None
    await lease.release()


@promise(needs={"predecessor", "evict"})
async def lost_in_the_middle_it_is_begun_anew(context: Context) -> None:
    """A holder that loses the lock while it recovers has not recovered: the next one is told of it, and recovers."""
    locks, other = await context.connect(), await context.connect()
    calls: list[Predecessor] = []
    tokens: list[int] = []

    def recover(lease: Lease, predecessor: Predecessor) -> None:
        calls.append(predecessor)

    def lose(lease: Lease, predecessor: Predecessor) -> None:
        tokens.append(lease.token)
        context.unwrapped(lease)._hold.lose("evicted")  # as the keeper does, when its renewal is refused

    lease = await locks.lock("door", recover=recover).acquire()
    assert await other.evict("door", lease.token)
    await context.raises(LeaseLost, other.lock("door", recover=lose).acquire())
    async with locks.lock("door", recover=recover):
        [predecessor] = calls
        assert predecessor.token in (lease.token, *tokens)
    assert (await context.view("door")).unrecovered is None
    await lease.release()


@promise(needs={"predecessor", "ttl"}, real_time=True)
async def killed_in_the_middle_it_is_begun_anew(context: Context) -> None:
    """Also by kill -9 of whoever recovers: the next one is told of that one, and recovers."""
    locks = await context.connect()
    calls: list[Predecessor] = []
    holder, heir = await context.remote_client(), await context.remote_client()
    ttl = context.seconds(0.7)
    first = await holder.acquire("door", ttl=ttl, recover="nothing to do")
    await holder.kill()
    dying = asyncio.ensure_future(heir.acquire("door", ttl=ttl, recover="for ever"))

    async def recovering() -> int | None:
        tokens = [claim.token for claim in (await context.view("door")).holders]
        return tokens[0] if tokens and tokens[0] != first else None

    second = await context.eventually(recovering, "the next one")
    await heir.kill()
    async with locks.lock("door", recover=lambda lease, predecessor: calls.append(predecessor)):
        [predecessor] = calls
        assert predecessor.token == second
        assert not predecessor.clean
    assert (await context.view("door")).unrecovered is None
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


@promise(needs={"predecessor", "evict"})
async def a_reentrant_lock_recovers_once(context: Context) -> None:
    """Also where the recovery itself takes the lock again."""
    locks, other = await context.connect(), await context.connect()
    calls: list[int] = []

    def recover(lease: Lease, predecessor: Predecessor) -> None:
        calls.append(lease.token)

    lease = await locks.reentrant("door", recover=recover).acquire()
    assert await other.evict("door", lease.token)
    await lease.release()
    lock = other.reentrant("door", recover=recover)
    async with lock as outer:
        async with lock as inner:
            assert inner.token == outer.token
            assert calls == [outer.token]


@promise(without="predecessor")
async def refused_where_it_cannot_be_kept(context: Context) -> None:
    """Before anything is sent, with the reason; and nothing is said of a predecessor."""
    locks = await context.connect()

    async def ask() -> None:
        locks.lock("door", recover=lambda lease, predecessor: None)

    error = await context.raises(Misconfigured, ask())
    assert "door" in str(error)
    async with locks.lock("door") as lease:
        assert lease.predecessor is None
