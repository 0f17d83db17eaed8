"""A request's timeout bounds all that is done for it: names, dialling, greetings, sentinels, maps of clusters."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends import open_engine
from holdfast.backends.queue_backend import Release, Renew
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim, LockSpec, State
from holdfast.ports import untyped_async_wire, untyped_wire
from tests.redis.faces import both, run
from tests.redis.proxy import proxied
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import with_cluster, with_sentinel

BOUND = 0.3
SLACK = 2.0
"""What a busy machine may add; less than what went wrong took."""
TTL = 2.0
NODE_TTL = 4.0
"""Of leases that must not be lost on a busy machine."""


def claim(name: str = "a") -> Claim:
    return Claim(LockSpec(name, ttl=30.0), "owner-1", "actor-1")


def renewal_takes(face: str, url: str, before: Callable[[], None]) -> float:
    """Open a wire, let something happen to the server, renew with a short bound; how long did it take to fail?"""
    engine = open_engine(url, "holdfast", 5.0)

    async def asynchronous() -> float:
        wire = untyped_async_wire(await engine.async_wire())
        await wire.call(Release(claim(), 0.0), 5.0)
        before()
        await asyncio.sleep(0.1)  # the end of the connection is seen
        began = time.monotonic()
        with pytest.raises(BackendUnavailable):
            await wire.call(Renew([claim()]), BOUND)
        took = time.monotonic() - began
        await wire.close()
        return took

    if face == "asyncio":
        return float(run(asynchronous()))
    wire = untyped_wire(engine.wire())
    wire.call(Release(claim(), 0.0), 5.0)
    before()
    began = time.monotonic()
    with pytest.raises(BackendUnavailable):
        wire.call(Renew([claim()]), BOUND)
    took = time.monotonic() - began
    wire.close()
    return took


@both
def test_a_greeting_that_nobody_answers_is_within_the_bound(server: RedisServer, face: str) -> None:
    with proxied(server.port) as proxy:

        def fall_silent() -> None:
            proxy.mute = True
            proxy.cut()
            time.sleep(0.05)

        assert renewal_takes(face, proxy.url, fall_silent) < BOUND + SLACK


@both
def test_a_name_that_nobody_resolves_is_within_the_bound(
    server: RedisServer, face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def hang(host: Any, *others: Any, **more: Any) -> Any:
        if host == "localhost":
            time.sleep(6)
        return resolve(host, *others, **more)

    with proxied(server.port) as proxy:

        def lose_the_resolver() -> None:
            monkeypatch.setattr(socket, "getaddrinfo", hang)
            proxy.cut()
            time.sleep(0.05)

        took = renewal_takes(face, f"redis://localhost:{proxy.port}", lose_the_resolver)
    assert took < BOUND + SLACK


@both
def test_a_sentinel_that_hangs_costs_a_moment(face: str) -> None:
    with with_sentinel() as (url, _primary, _), proxied(1) as hung:
        hung.mute = True
        url = url.replace("://", f"://127.0.0.1:{hung.port},")
        began = time.monotonic()
        if face == "sync":
            with holdfast.connect(url) as locks:
                assert locks.lock("a").acquire().release()
        else:

            async def main() -> None:
                async with holdfast.aio.connect(url) as locks:
                    assert await (await locks.lock("a").acquire()).release()

            run(main())
        assert time.monotonic() - began < 4, "each connection waited for the sentinel that hangs"


@both
def test_sentinels_that_hang_are_within_the_bound(face: str) -> None:
    with with_sentinel() as (url, primary, _), proxied(int(url.partition("/main")[0].rpartition(":")[2])) as between:
        url = f"redis+sentinel://127.0.0.1:{between.port}/main"

        def fall_silent() -> None:
            between.mute = True
            primary.raw("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            primary.raw("CLIENT", "KILL", "TYPE", "pubsub")
            time.sleep(0.05)

        assert renewal_takes(face, url, fall_silent) < BOUND + SLACK


@both
def test_a_holder_is_told_in_time_when_new_connections_are_silent(server: RedisServer, face: str) -> None:
    with proxied(server.port) as proxy:

        def fall_silent() -> float:
            proxy.mute = True
            proxy.cut()
            return time.monotonic()

        async def asynchronous() -> float:
            async with holdfast.aio.connect(proxy.url, ttl=TTL, request_timeout=1) as locks:
                began = 0.0
                with pytest.raises((holdfast.LeaseLost, BackendUnavailable)):  # noqa: PT012
                    async with locks.lock("a"):
                        began = fall_silent()
                        await asyncio.sleep(30)
                return time.monotonic() - began

        if face == "asyncio":
            took = float(run(asynchronous()))
        else:
            with holdfast.connect(proxy.url, ttl=TTL, request_timeout=1) as locks:
                lease = locks.lock("a").acquire()
                began = fall_silent()
                while lease.state is not State.LOST:
                    assert time.monotonic() < began + 30
                    time.sleep(0.01)
                took = time.monotonic() - began
        assert took < TTL + SLACK


def nodes_of(locks_at: list[RedisServer], names: list[str]) -> dict[int, list[str]]:
    """Which of the first three has which of these names, by its place."""
    from holdfast.backends.redis.slots import SLOTS_COUNT, slot_of

    found: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for name in names:
        found[slot_of(f"holdfast/line/{name}".encode()) * 3 // SLOTS_COUNT].append(name)
    return found


@both
def test_leases_at_healthy_nodes_are_kept_while_another_node_hangs(face: str) -> None:
    names = [f"n{number}" for number in range(12)]
    with with_cluster() as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        by_node = nodes_of(nodes, names)
        sick, healthy = by_node[0], by_node[1] + by_node[2]
        assert sick
        assert healthy

        async def asynchronous() -> tuple[list[str], list[str]]:
            locks = await holdfast.aio.connect(url, ttl=NODE_TTL)
            leases = {name: await locks.lock(name).acquire() for name in names}
            nodes[0].pause()
            await asyncio.sleep(2 * NODE_TTL)
            lost = [name for name in names if leases[name].state is State.LOST]
            nodes[0].resume()
            await asyncio.sleep(0.1)
            await locks.close()
            return lost, sick

        if face == "asyncio":
            lost, expected = run(asynchronous())
        else:
            with holdfast.connect(url, ttl=NODE_TTL) as locks:
                leases = {name: locks.lock(name).acquire() for name in names}
                nodes[0].pause()
                time.sleep(2 * NODE_TTL)
                lost = [name for name in names if leases[name].state is State.LOST]
                nodes[0].resume()
                expected = sick
        assert sorted(lost) == sorted(expected)


def test_a_cancelled_lock_all_does_not_wait_for_a_silent_server_once_for_each_name(server: RedisServer) -> None:
    async def main() -> float:
        with proxied(server.port) as proxy:
            async with holdfast.aio.connect(proxy.url, request_timeout=1) as locks:
                assert await (await locks.lock("a").acquire()).release()
                proxy.hold_up()
                taking = asyncio.ensure_future(locks.lock_all([f"n{number}" for number in range(10)]).acquire())
                await asyncio.sleep(0.1)
                taking.cancel()
                began = time.monotonic()
                with pytest.raises(asyncio.CancelledError):
                    await taking
                took = time.monotonic() - began
                proxy.let_flow()
                return took

    assert run(main()) < 3 + SLACK
