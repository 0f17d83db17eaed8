"""Servers whose disk is slow, and forced: they hear of a write at different times. The client's server dies meanwhile.

A create whose reply was lost may be carried out, and the server that the session goes on at may not have heard of it
yet. Whoever looks for it there without waiting (`Sync`) takes it for not done, and leaves it behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from holdfast._core.flow import Endpoint
from holdfast.testing.context import BODIES, Body, Context
from tests.zookeeper.ensemble import Ensemble, Member, running
from tests.zookeeper.test_fail_over import play

ROUNDS = 5
"""Of which most leave an orphan, if nobody waits."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Ensemble]:
    with running(slow=True) as found:
        yield found


@pytest.fixture
def ensemble(shared: Ensemble) -> Iterator[Ensemble]:
    yield shared
    for member in shared.members:
        if member.process is None:
            member.start()
    shared.await_quorum()


async def settle_at_a_follower(ensemble: Ensemble, link: Any, locks: Any) -> Member:
    """Have a session go on at one follower, and know the other one as the next: the leader would be up to date."""
    first, second = [member for member in ensemble.members if member.role == "follower"]
    rest = [member for member in ensemble.members if member not in (first, second)]
    link.servers._endpoints = [Endpoint("127.0.0.1", member.port) for member in (first, second, *rest)]
    link.servers._at = 0
    link.drop(link.up, ConnectionError("planted"))
    await (await locks.lock("another").acquire()).release()  # whoever asks has it connected again
    assert link.up is not None
    return first if link.servers._at == 0 else second


def has_asked(link: Any, before: int) -> bool:
    return bool(link.session._xid > before)


@pytest.mark.parametrize("body", BODIES)
def test_a_create_whose_reply_was_lost_leaves_no_orphan(ensemble: Ensemble, body: Body) -> None:
    """It is found where the session goes on: the name is taken, and free again after the release."""

    async def program(context: Context) -> None:
        locks = await context.connect(ttl=60.0, request_timeout=20.0)
        for number in range(ROUNDS):
            name = f"door-{number}"
            await (await locks.lock(name).acquire()).release()
            [link] = context.unwrapped(locks)._wire._client._links.values()
            member, before = await settle_at_a_follower(ensemble, link, locks), link.session._xid
            taking = context.start(locks.lock(name).acquire(timeout=30.0))
            await context.eventually(partial(has_asked, link, before), "a request")
            await asyncio.sleep(0.003 + 0.015 * (number % 3))
            member.stop()
            lease = await taking  # else our own orphan is in the way
            assert await lease.release()
            member.start()
            await asyncio.to_thread(ensemble.await_quorum)
            assert await context.survey(name) == []

    play(program, ensemble.url, body)
