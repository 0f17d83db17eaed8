"""A request's time covers all that is done for it; who is cancelled leaves no connection; an idle end is no fault."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends import open_engine
from holdfast.backends.etcd.rpc import grant_lease
from holdfast.backends.etcd.session import Session
from holdfast.testing.proxy import Network
from tests.etcd.cluster import Cluster, await_true


def test_a_name_that_nobody_looks_up_costs_a_request_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's resolver knows no time-out: it is asked aside."""
    over = threading.Event()
    plain = socket.getaddrinfo

    def hanging(host: Any, *words: Any, **options: Any) -> Any:
        if host == "etcd.example":
            over.wait(60)
            raise socket.gaierror("no such name")
        return plain(host, *words, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    began = time.monotonic()
    try:
        with pytest.raises(holdfast.BackendUnavailable, match=r"etcd\.example"):
            holdfast.connect("etcd://etcd.example:2379", request_timeout=0.5)
        assert time.monotonic() - began < 20
    finally:
        over.set()


def test_a_wire_whose_closing_is_cancelled_leaves_no_connection(state_cluster: Cluster) -> None:
    network = Network.start(state_cluster.url)

    async def play() -> None:
        engine: Any = open_engine(network.url, "holdfast", 2.0)
        wire = await engine.async_wire()
        session = Session(4711, 5, sole=False, asked_for=0.0)
        engine.backend.sessions._shared[5] = session  # something to be told at the end
        await asyncio.gather(*(wire.call((grant_lease(session.lease + number, 5),), 2.0) for number in range(3)))
        assert network.open == 3
        network.silence()
        closing = asyncio.ensure_future(wire.close())
        await asyncio.sleep(0.1)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        network.flow()
        await asyncio.to_thread(await_true, lambda: network.open == 0, "the last connection to end")

    try:
        asyncio.run(play())
    finally:
        network.close()


@pytest.mark.parametrize("face", ["sync", "asyncio"])
def test_a_member_that_ends_what_is_idle_keeps_its_place(state_cluster: Cluster, face: str) -> None:
    """The first of the URL is used until it does badly; to end an idle connection is nothing bad."""
    network = Network.start(state_cluster.url)

    async def play() -> None:
        async with holdfast.aio.connect(network.url) as locks:
            await (await locks.lock("door").acquire()).release()
            network.end_idle()
            await asyncio.sleep(0.1)
            await (await locks.lock("door").acquire()).release()
            assert locks._wire._client.connector.member == 0  # type: ignore[attr-defined]

    try:
        if face == "asyncio":
            asyncio.run(play())
        else:
            with holdfast.connect(network.url) as locks:
                locks.lock("door").acquire().release()
                network.end_idle()
                time.sleep(0.1)
                locks.lock("door").acquire().release()
                assert locks._wire._client.connector.member == 0  # type: ignore[attr-defined]
    finally:
        network.close()
