"""Servers that have lost their memory, or that remember an older time: the coordinator begins anew with them.

Such a server is behind what a client has seen, and turns it away as it would if it merely lagged. All of a session is
over then, whatever the servers remember of it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator

import pytest

from holdfast.model import State
from holdfast.testing.context import BODIES, Body, Context
from tests.zookeeper.ensemble import Ensemble, running
from tests.zookeeper.test_fail_over import play

TTL = 6.0
LONG = 45.0
"""A ttl that outlives a new start of all servers, on a busy machine."""


@pytest.fixture(params=[1, 3])
def ensemble(request: pytest.FixtureRequest) -> Iterator[Ensemble]:
    with running(members=request.param) as found:
        yield found


async def come_back(ensemble: Ensemble) -> None:
    for member in ensemble.members:
        member.start()
    await asyncio.to_thread(ensemble.await_quorum)


@pytest.mark.parametrize("body", BODIES)
def test_servers_that_were_wiped_are_joined_again(ensemble: Ensemble, body: Body) -> None:
    """What was held is lost, and told; the next acquire, survey and wait find the servers as they are."""

    async def program(context: Context) -> None:
        locks = await context.connect(ttl=TTL)
        lease = await locks.lock("door").acquire()
        for _ in range(20):
            await (await locks.lock("other").acquire()).release()
        waiter = context.start(locks.lock("door").acquire())
        await context.queued("door", 1)
        ensemble.stop()
        for member in ensemble.members:
            member.wipe()
        await come_back(ensemble)
        await lease.lost.wait()
        assert lease.state is State.LOST
        async with context.soon():
            assert await (await waiter).release()
            await (await locks.lock("new").acquire()).release()
            assert await locks.survey() == []

    play(program, ensemble.url, body)


@pytest.mark.parametrize("body", BODIES)
def test_servers_that_were_restored_are_joined_again(ensemble: Ensemble, body: Body) -> None:
    """They know the session, and the node of the hold, from the backup: neither counts any more."""

    async def program(context: Context) -> None:
        locks = await context.connect(ttl=LONG)
        lease = await locks.lock("door").acquire()
        ensemble.stop()
        for member in ensemble.members:
            shutil.copytree(member.folder / "version-2", member.folder / "backup")
        await come_back(ensemble)
        await context.eventually(lambda: _renewed(lease), "a renewal")
        for _ in range(20):
            await (await locks.lock("other").acquire()).release()
        ensemble.stop()
        for member in ensemble.members:
            member.wipe()
            shutil.copytree(member.folder / "backup", member.folder / "version-2")
        await come_back(ensemble)
        await lease.lost.wait()
        async with context.soon():
            assert await (await locks.lock("door").acquire()).release()

    play(program, ensemble.url, body)


async def _renewed(lease: object) -> bool:
    try:
        await lease.renew()  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001  the servers are on their way
        return False
    return True
