"""A holder is asked to give way: it learns of it with its next renewal, and does as it sees fit."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.backends.queue_backend import PATIENCE_S
from holdfast.errors import Misconfigured
from holdfast.testing.context import BODIES, Body, Context
from holdfast.testing.engine_under_test import EngineUnderTest
from tests.zookeeper.ensemble import Ensemble


@pytest.mark.parametrize("body", BODIES)
def test_each_holder_or_the_one_with_the_token(ensemble: Ensemble, body: Body) -> None:
    async def main() -> None:
        context = Context(EngineUnderTest(ensemble.url), body, virtual=False)
        failed = True
        try:
            locks, operator = await context.connect(), await context.connect()
            leases = [await locks.semaphore("pool", permits=3).acquire() for _ in range(3)]
            waiter = context.start(locks.semaphore("pool", permits=3).acquire())
            await context.queued("pool", 1)
            assert await operator.ask("nobody") == 0
            assert await operator.ask("pool", leases[1].token) == 1

            async def asked() -> list[bool]:
                for lease in leases:
                    await lease.renew()
                return [lease.asked.is_set() for lease in leases]

            await context.eventually(lambda: _is(asked(), [False, True, False]), "that one was asked")
            assert await operator.ask("pool") == 3
            await context.eventually(lambda: _is(asked(), [True, True, True]), "that all were asked")
            for lease in leases:
                lease.check()
            assert await leases[1].release()
            assert await (await waiter).release()
            for lease in (leases[0], leases[2]):
                assert await lease.release()
            await context.raises(Misconfigured, _guard(leases[0]))
            failed = False
        finally:
            await context.end(failed, leaves=False)

    asyncio.run(main())


@pytest.mark.parametrize("body", BODIES)
def test_who_waits_beside_a_holder_that_was_asked_is_woken_by_its_release(ensemble: Ensemble, body: Body) -> None:
    """The wish is written to the holder's node: that must not use up the watch of a waiter on the same session."""

    async def main() -> None:
        context = Context(EngineUnderTest(ensemble.url), body, virtual=False)
        failed = True
        try:
            locks, operator = await context.connect(ttl=60.0), await context.connect()
            lease = await locks.lock("door").acquire()
            [link] = context.unwrapped(locks)._wire._client._links.values()
            waiter = context.start(locks.lock("door").acquire())
            await context.queued("door", 1)
            await context.eventually(lambda: link.claims.own and link.claims.next > 0.0, "a watch on its own node")
            assert await operator.ask("door") == 1

            async def asked() -> bool:
                await lease.renew()
                return bool(lease.asked.is_set())

            await context.eventually(asked, "that it was asked")
            assert await lease.release()
            released = asyncio.get_running_loop().time()
            successor = await waiter
            waited = asyncio.get_running_loop().time() - released
            assert waited < PATIENCE_S / 6, "it was woken by its own look only"
            assert await successor.release()
            failed = False
        finally:
            await context.end(failed, leaves=False)

    asyncio.run(main())


async def _is(found: object, expected: object) -> bool:
    return await found == expected  # type: ignore[misc, no-any-return]


async def _guard(lease: object) -> object:
    """Of a lease that was released there is nothing to guard with."""
    return lease.guard()  # type: ignore[attr-defined]
