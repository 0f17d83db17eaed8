"""A flow of a client that is cancelled while it dials leaves nothing open."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest

from holdfast._core.flow import NEW_EVENT, Endpoint, Flow, Open, WaitEvent, WakeEvent
from holdfast.aio import client_driver as aio_driver
from holdfast.aio.client_driver import run_client
from holdfast.aio.connection import TaskConnection, open_connection
from holdfast.backends.connections.pool import ConnectionPool
from holdfast.backends.connections.single_flight import SingleFlight
from holdfast.backends.etcd.connection import EtcdConnection
from holdfast.backends.etcd.connector import Connector
from holdfast.backends.etcd.handshake import Login
from holdfast.backends.relational.dialer import Dialer
from holdfast.backends.relational.error_mapping import ErrorMapping
from holdfast.backends.zookeeper.connection import SessionConnection
from holdfast.backends.zookeeper.connector import ServerRotation
from holdfast.backends.zookeeper.ops import Sync
from holdfast.clock import now as clock
from holdfast.torture.sandbox import Sandbox
from holdfast.torture.sandbox.certificates import certificates


def test_a_connection_that_is_made_in_the_step_of_a_cancellation_is_closed() -> None:
    """The flow is cancelled after the connection was there, and before it was given it."""

    async def main() -> None:
        made: list[TaskConnection] = []
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        real = open_connection

        def cancel_soon() -> None:
            asyncio.get_running_loop().call_soon(task.cancel)

        async def open_and_cancel(endpoint: Endpoint, deadline: float) -> TaskConnection:
            made.append(await real(endpoint, deadline))
            asyncio.get_running_loop().call_soon(cancel_soon)
            return made[0]

        def flow() -> Flow[None]:
            yield Open(Endpoint("127.0.0.1", port), clock() + 5)
            raise AssertionError("it was cancelled")

        with patch.object(aio_driver, "open_connection", open_and_cancel):
            task = asyncio.ensure_future(run_client(flow(), drain=False))
            with suppress(asyncio.CancelledError):
                await task
        assert made[0].closed
        server.close()

    asyncio.run(main())


def test_a_tls_handshake_that_is_given_up_leaves_no_number_watched() -> None:
    """asyncio refuses the next connection that is given the number, as long as it watches the one before."""

    async def main(trusting: ssl.SSLContext, showing: ssl.SSLContext) -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=showing)
        port = server.sockets[0].getsockname()[1]
        for turns in range(100):
            task = asyncio.ensure_future(open_connection(Endpoint("127.0.0.1", port, tls=trusting), clock() + 60))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            (await open_connection(Endpoint("127.0.0.1", port), clock() + 60)).close()
            if not task.cancelled():
                (await task).close()
                break
        else:
            raise AssertionError("it shook hands in no number of turns")
        server.close()

    with Sandbox() as sandbox:
        shown = certificates(sandbox, "127.0.0.1")
        showing = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        showing.load_cert_chain(shown.shown, shown.key)
        asyncio.run(main(shown.context(), showing))


def never(*_: object) -> Flow[Any]:
    event: WakeEvent = yield NEW_EVENT
    yield WaitEvent(event, None)
    raise AssertionError("nobody sets it")


def test_a_call_that_waits_for_another_flow_to_dial_is_cancelled_at_once() -> None:
    """It is drained, but nothing of it is under way: its deadline is an hour away."""

    async def main() -> None:
        errors = ErrorMapping("the server", {}, frozenset())
        dialer = Dialer(never, lambda made: None, 3600.0, errors)
        calls = [asyncio.ensure_future(run_client(dialer.wait(clock() + 3600), drain=True)) for _ in range(2)]
        shielded = asyncio.ensure_future(run_client(dialer.wait(clock() + 3600), drain=True, shield=True))
        await asyncio.sleep(0)
        for task in (*calls, shielded):
            task.cancel()
        done, _ = await asyncio.wait([*calls, shielded], timeout=0.5)
        assert done == set(calls)
        dialer.close()
        await asyncio.wait([shielded], timeout=10)
        assert shielded.done()
        for background in aio_driver._background:
            background.cancel()

    asyncio.run(main())


PATIENCE_S = 15.0
"""Of calls that are not to last so long."""


def single_flight() -> Callable[[], Flow[object]]:
    flight: SingleFlight[object] = SingleFlight(never, 3600.0)
    return lambda: flight.wait(clock() + PATIENCE_S)


def pool_of_one() -> Callable[[], Flow[object]]:
    pool: ConnectionPool[EtcdConnection] = ConnectionPool(never, limit=1)
    aio_driver.spawn_client(pool.take(clock() + PATIENCE_S))
    return lambda: pool.take(clock() + PATIENCE_S)


def zookeeper() -> Callable[[], Flow[object]]:
    servers = ServerRotation([Endpoint("a", 2181)], "zookeeper://a")
    link = SessionConnection(servers, (), 10.0, 4.0, "/holdfast", b"", clock())
    return lambda: link.call((Sync("/holdfast"),), clock() + PATIENCE_S)


def etcd_login() -> Callable[[], Flow[object]]:
    login = Login(Connector([Endpoint("a", 2379)], "etcd://a"), "user", "password", 3600.0, never)
    return lambda: login.replace(None, clock() + PATIENCE_S)


@pytest.mark.parametrize("waits", [single_flight, pool_of_one, zookeeper, etcd_login])
def test_a_call_that_waits_for_a_connection_or_a_log_in_of_another_flow_is_cancelled_at_once(
    waits: Callable[[], Callable[[], Flow[object]]],
) -> None:
    async def main() -> None:
        with patch.object(SessionConnection, "connect", never):
            wait = waits()
            await asyncio.sleep(0)
            calls = [asyncio.ensure_future(run_client(wait(), drain=True)) for _ in range(2)]
            for _ in range(3):
                await asyncio.sleep(0)
            for task in calls:
                task.cancel()
            done, _ = await asyncio.wait(calls, timeout=PATIENCE_S / 3)
            assert done == set(calls)
            assert all(task.cancelled() for task in calls)
            for background in aio_driver._background:
                background.cancel()

    asyncio.run(main())
