"""A thousand leases on long names of other scripts: all their watches are more than a server takes in one request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.model import State
from holdfast.testing.context import BODIES, Body, Context
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.test_fail_over import play

MANY = 1000
NAME = "é" * 250
"""Six bytes of a path for each of these."""


def confirmed(link: Any) -> bool:
    return len(link.session.on_data) >= MANY


@pytest.mark.parametrize("body", BODIES)
def test_one_reconnection_does_not_lose_a_thousand_leases(ensemble: Ensemble, body: Body) -> None:
    async def program(context: Context) -> None:
        locks = await context.connect(ttl=40.0, request_timeout=20.0)
        leases = []
        for first in range(0, MANY, 50):
            some = [locks.lock(f"{number}{NAME}").acquire() for number in range(first, first + 50)]
            leases += await asyncio.gather(*some)
        [link] = context.unwrapped(locks)._wire._client._links.values()
        await context.eventually(lambda: confirmed(link), "a watch on each of them")
        link.drop(link.up, ConnectionError("planted"))
        for lease in leases[::100]:
            await lease.renew()
            assert lease.state is State.HELD
        await asyncio.gather(*(lease.release() for lease in leases))

    play(program, ensemble.url, body)


@pytest.mark.parametrize("body", BODIES)
def test_more_names_than_fit_into_one_request_are_refused(ensemble: Ensemble, body: Body) -> None:
    """The server would drop the connection, again and again."""

    async def program(context: Context) -> None:
        locks = await context.connect()
        several = locks.lock_all([f"{number}{NAME}" for number in range(MANY)])
        error = await context.raises(Misconfigured, several.acquire(timeout=10.0))
        assert "lock fewer of them at once" in str(error)

    play(program, ensemble.url, body)


@pytest.mark.parametrize("body", BODIES)
def test_one_waiter_may_watch_more_than_fits_into_one_request(ensemble: Ensemble, body: Body) -> None:
    """With n permits it watches the n claims before it."""

    async def program(context: Context) -> None:
        locks = await context.connect(ttl=40.0, request_timeout=20.0)
        pool = locks.semaphore(NAME, permits=MANY)
        leases = []
        for _ in range(0, MANY, 50):
            leases += await asyncio.gather(*(pool.acquire() for _ in range(50)))
        waiter = context.start(pool.acquire())
        await context.queued(NAME, 1)
        assert await leases[MANY // 2].release()
        async with context.soon():
            assert await (await waiter).release()
        leases[0].check()
        del leases[MANY // 2]
        await asyncio.gather(*(lease.release() for lease in leases))

    play(program, ensemble.url, body)
