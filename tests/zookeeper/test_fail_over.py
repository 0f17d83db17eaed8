"""Servers die and hang under held leases: JEOPARDY, and then HELD or LOST; never silently stale.

Each is played for threads and for tasks, on an ensemble that is whole again afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.errors import BackendUnavailable
from holdfast.model import State
from holdfast.testing.context import BODIES, Body, Context
from holdfast.testing.engine_under_test import EngineUnderTest
from tests.zookeeper.ensemble import Ensemble, Member, running

LONG = 30.0
"""A ttl that outlives the election of a leader; a server that hangs is noticed after a third of it."""
LONGEST = 60.0
"""A ttl that outlives the start of two servers and their election, on a machine that has much else to do."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Ensemble]:
    with running() as found:
        yield found


@pytest.fixture
def ensemble(shared: Ensemble) -> Iterator[Ensemble]:
    yield shared
    for member in shared.members:
        if member.process is None:
            member.start()
        else:
            member.resume()
    shared.await_quorum()


def in_use(ensemble: Ensemble, locks: Any, context: Context) -> Member:
    """The member that the one session of this coordinator is connected to."""
    [link] = context.unwrapped(locks)._wire._client._links.values()
    return ensemble.member_at(link.servers.current.port)


def kill(member: Member) -> None:
    member.stop()


def pause(member: Member) -> None:
    member.pause()


def play(program: Callable[[Context], Any], url: str, body: Body) -> None:
    async def perform() -> None:
        context = Context(EngineUnderTest(url), body, virtual=False)
        failed = True
        try:
            await program(context)
            failed = False
        finally:
            await context.end(failed, leaves=True)

    asyncio.run(perform())


WHO: dict[str, Callable[[Ensemble, Any, Context], list[Member]]] = {
    "leader": lambda ensemble, locks, context: [ensemble.leader],
    "member_in_use": lambda ensemble, locks, context: [in_use(ensemble, locks, context)],
    "minority": lambda ensemble, locks, context: [
        m for m in ensemble.members if m is not in_use(ensemble, locks, context)
    ][:1],
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("how", [kill, pause])
@pytest.mark.parametrize("who", WHO)
def test_a_held_lease_survives(ensemble: Ensemble, who: str, how: Callable[[Member], None], body: Body) -> None:
    """With a majority left: the same session goes on at another server, nobody else gets in, and a waiter is served."""

    async def program(context: Context) -> None:
        locks = await context.connect(ttl=LONG)
        lease = await locks.lock("door").acquire()
        waiter = context.start(locks.lock("door").acquire())
        await context.queued("door", 1)
        for member in WHO[who](ensemble, locks, context):
            how(member)

        async def renewed() -> bool:
            try:
                await lease.renew()
            except BackendUnavailable:
                assert lease.state in (State.HELD, State.JEOPARDY)
                return False
            return True

        await context.eventually(renewed, "a renewal")
        assert lease.state is State.HELD
        assert not waiter.done(), "two hold at once"
        assert await lease.release()
        successor = await waiter
        assert successor.token > lease.token
        assert await successor.release()

    play(program, ensemble.url, body)


@pytest.mark.parametrize("body", BODIES)
def test_who_only_renews_leaves_a_server_that_hangs(ensemble: Ensemble, body: Body) -> None:
    """Renewals are all that is said on the session, and nobody else looks after it: they find another server."""

    async def program(context: Context) -> None:
        locks = await context.connect(ttl=LONG / 2)
        lease = await locks.lock("door").acquire()
        [link] = context.unwrapped(locks)._wire._client._links.values()

        async def only_renewed() -> bool:
            return not link.kept

        await context.eventually(only_renewed, "the end of the keep-alive flow")
        hung = next(m for m in ensemble.members if m.role == "follower")
        while in_use(ensemble, locks, context) is not hung:  # not the leader: that would cost an election
            link.servers.next()
        link.drop(link.up, ConnectionError("moved"))
        await lease.renew()
        await context.eventually(only_renewed, "the end of the keep-alive flow")
        hung = in_use(ensemble, locks, context)
        hung.pause()

        async def elsewhere() -> bool:
            assert lease.state is not State.LOST, lease.reason
            return link.up is not None and in_use(ensemble, locks, context) is not hung

        await context.eventually(elsewhere, "another server")
        await lease.renew()
        assert lease.state is State.HELD
        assert await lease.release()

    play(program, ensemble.url, body)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("how", [kill, pause])
def test_without_a_majority_a_lease_is_lost_in_time(
    ensemble: Ensemble, how: Callable[[Member], None], body: Body
) -> None:
    """JEOPARDY first, then LOST before anybody else can hold; with the majority back, all goes on."""

    async def program(context: Context) -> None:
        states: list[str] = []
        locks = await context.connect(on_event=lambda event: states.append(event.kind))
        lease = await locks.lock("door", ttl=3.0).acquire()
        gone = [member for member in ensemble.members if member is not in_use(ensemble, locks, context)]
        for member in gone:
            how(member)
        await lease.lost.wait()
        assert (lease.state, lease.reason) == (State.LOST, "expired")
        await context.eventually(lambda: states[:3] == ["acquired", "jeopardy", "lost"], f"three events, of {states}")
        await context.raises(BackendUnavailable, locks.lock("door", ttl=3.0, timeout=0.3).acquire())
        for member in gone:
            if member.process is None:
                member.start()
            else:
                member.resume()
        await asyncio.to_thread(ensemble.await_quorum)
        async with context.soon():
            successor = await locks.lock("door", ttl=20).acquire()
        assert successor.token > lease.token
        assert await lease.release() is False
        successor.check()
        assert await successor.release()

    play(program, ensemble.url, body)


@pytest.mark.parametrize("body", BODIES)
def test_a_majority_that_is_back_in_time_costs_nothing(ensemble: Ensemble, body: Body) -> None:
    """The lease was in jeopardy, and is held again, with the same token."""

    async def program(context: Context) -> None:
        events: list[str] = []
        locks = await context.connect(on_event=lambda event: events.append(event.kind))
        lease = await locks.lock("door", ttl=LONGEST).acquire()
        gone = [member for member in ensemble.members if member is not in_use(ensemble, locks, context)]
        for member in gone:
            kill(member)

        async def jeopardy() -> bool:
            try:
                await lease.renew()
            except BackendUnavailable:
                return True
            return False

        await context.eventually(jeopardy, "a renewal that fails")
        for member in gone:
            member.start()
        await asyncio.to_thread(ensemble.await_quorum)

        async def renewed() -> bool:
            return not await jeopardy()

        await context.eventually(renewed, "a renewal")
        assert lease.state is State.HELD
        assert [claim.token for claim in (await context.view("door")).holders] == [lease.token]
        assert await lease.release()

    play(program, ensemble.url, body)
