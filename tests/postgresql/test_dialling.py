"""Connections that the server ends, and servers that accept and say nothing: every call ends, in its own time.

A postmaster that is stopped (SIGSTOP) accepts connections, because the kernel does, and says nothing on them.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.postgresql.codec import Codec
from holdfast.backends.relational.error_mapping import Silence
from holdfast.errors import BackendUnavailable, HoldfastError
from tests.postgresql.house import connector
from tests.postgresql.server import Server, running

SCHEMES = ["postgresql", "postgresql+session"]
SLACK = 4.0
"""Seconds that a busy machine may take for what is done at once."""


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server of these tests' own, which lives after each."""
    with running() as server:
        yield server


def end_sessions(server: Server) -> None:
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'")
    while server.backends():
        time.sleep(0.01)


@contextmanager
def silent(server: Server) -> Iterator[None]:
    """Every connection has been reset, and new ones are accepted and not answered."""
    end_sessions(server)
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)
        server.await_answer()


def with_scheme(server: Server, scheme: str) -> str:
    return server.url().replace("postgresql:", f"{scheme}:")


# Every order is answered


def test_every_order_is_answered_although_the_connection_was_reset(own: Server) -> None:
    """Several at once: one that could not be sent must not be forgotten, because its asker cannot be cancelled."""
    codec = Codec("n", "host", 1)
    link = connector(own.url()).dial()
    end_sessions(own)
    requests = [link.connection.start(codec.tidy(1)) for _ in range(7)]
    for request in requests:
        with pytest.raises(Silence):
            link.finish(request, 60.0)
    assert link.connection.closed


def test_a_connection_knows_its_session_also_after_its_end(own: Server) -> None:
    """Whoever gives up names the session that waited; that one may be over."""
    link = connector(own.url()).dial()
    number = link.connection.number
    assert number
    link.close()
    assert link.connection.number == number


# Several hosts


def test_a_host_that_does_not_answer_leaves_time_for_the_next(own: Server) -> None:
    """And one that refuses, or is not what was asked for, is passed over."""
    with socket.socket() as mute, socket.socket() as nobody:
        mute.bind(("127.0.0.1", 0))
        mute.listen(1)
        nobody.bind(("127.0.0.1", 0))
        ports = f"{mute.getsockname()[1]},{nobody.getsockname()[1]},{own.port}"
        url = f"postgresql://postgres@/postgres?host=127.0.0.1,127.0.0.1,localhost&port={ports}"
        with holdfast.connect(url + "&target_session_attrs=read-write", request_timeout=6.0) as locks:
            locks.lock("door").acquire().release()
        url = url.replace("127.0.0.1,", "", 1).replace(ports, ports.partition(",")[2])
        with pytest.raises(BackendUnavailable, match=r"Multiple connection attempts.*refused.*not in hot standby"):
            holdfast.connect(url + "&target_session_attrs=standby", request_timeout=6.0)


def test_a_name_that_cannot_be_found_is_passed_over(own: Server) -> None:
    url = f"postgresql://postgres@/postgres?host=nobody.invalid,127.0.0.1&port=1,{own.port}"
    with holdfast.connect(url) as locks:
        locks.lock("door").acquire().release()
    with pytest.raises(BackendUnavailable, match=r"failed to resolve host 'nobody\.invalid'"):
        holdfast.connect("postgresql://postgres@nobody.invalid/postgres")


# Idle connections that the server has ended


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_idle_connection_that_was_ended_is_dialled_again(own: Server, scheme: str) -> None:
    with holdfast.connect(with_scheme(own, scheme), namespace=f"idle-{scheme}") as locks:
        calls: list[Callable[[], Any]] = [
            lambda: locks.lock("door").try_acquire(),
            lambda: locks.survey(),
            lambda: locks.limiter("api", "5/s").try_acquire(),
        ]
        for call in calls:
            end_sessions(own)
            call()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_idle_connection_that_was_ended_is_dialled_again_for_tasks(own: Server, scheme: str) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(with_scheme(own, scheme), namespace=f"idle-aio-{scheme}") as locks:
            calls: list[Callable[[], Any]] = [
                lambda: locks.lock("door").try_acquire(),
                lambda: locks.survey(),
                lambda: locks.limiter("api", "5/s").try_acquire(),
            ]
            for call in calls:
                end_sessions(own)  # the loop has no time to notice
                await asyncio.gather(*(call() for _ in range(5)))

    asyncio.run(main())


# A server that is silent


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_loss_is_told_while_a_new_connection_is_dialled(own: Server, scheme: str) -> None:
    """However long dialling may take."""
    with holdfast.connect(with_scheme(own, scheme), namespace=f"loss-{scheme}", request_timeout=30) as locks:
        lease = locks.lock("door", ttl=2).acquire()
        with silent(own):
            assert lease.lost.wait(2 + SLACK)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_loss_is_told_while_a_new_connection_is_dialled_for_tasks(own: Server, scheme: str) -> None:
    async def main() -> None:
        url = with_scheme(own, scheme)
        async with holdfast.aio.connect(url, namespace=f"loss-aio-{scheme}", request_timeout=30) as locks:
            lease = await locks.lock("door", ttl=2).acquire()
            with silent(own):
                async with asyncio.timeout(2 + SLACK):
                    await lease.lost.wait()

    asyncio.run(main())


def ends_soon(call: Callable[[], object], times: int, within: float) -> None:
    """Each of these calls fails; all of them together in so many seconds."""
    began = time.monotonic()
    for _ in range(times):
        with pytest.raises(HoldfastError):
            call()
    assert time.monotonic() - began < times * within + SLACK


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dialling_is_part_of_the_bound(own: Server, scheme: str) -> None:
    """Of a request, and of `connect`: also where it is shorter than the two seconds of libpq."""
    url = with_scheme(own, scheme)
    with holdfast.connect(url, namespace=f"bound-{scheme}", request_timeout=0.2) as locks:
        lease = locks.lock("held").acquire()
        with silent(own):
            ends_soon(lambda: locks.lock("door").try_acquire(), 8, 0.2)
            ends_soon(lambda: locks.lock("door").acquire(timeout=0.3), 4, 0.5)
            ends_soon(lambda: locks.survey(), 8, 0.2)
            ends_soon(lambda: holdfast.connect(url, request_timeout=0.2), 8, 0.2)
            began = time.monotonic()
            lease.release()
            assert time.monotonic() - began < SLACK


@pytest.mark.parametrize("scheme", SCHEMES)
def test_dialling_is_part_of_the_bound_for_tasks(own: Server, scheme: str) -> None:
    """And it can be cancelled."""
    url = with_scheme(own, scheme)

    async def main() -> None:
        async with holdfast.aio.connect(url, namespace=f"bound-aio-{scheme}", request_timeout=0.2) as locks:
            with silent(own):
                began = time.monotonic()
                for _ in range(8):
                    with pytest.raises(BackendUnavailable):
                        await locks.lock("door").try_acquire()
                assert time.monotonic() - began < 8 * 0.2 + SLACK
                waiting = [asyncio.ensure_future(locks.lock("door").acquire()) for _ in range(8)]
                await asyncio.sleep(0.05)
                for task in waiting:
                    task.cancel()
                done, _ = await asyncio.wait(waiting, timeout=SLACK)
                assert len(done) == 8
                assert all(task.cancelled() for task in done)

    asyncio.run(main())


def test_connecting_in_a_thread_that_is_stuck_leaves_no_connection(own: Server) -> None:
    """What is dialled for somebody who has given up is closed once it is there."""
    with silent(own):
        for _ in range(3):
            with pytest.raises(BackendUnavailable):
                holdfast.connect(own.url(), request_timeout=0.1)
    end = time.monotonic() + 60
    while own.backends() or any(thread.name.startswith("holdfast-") for thread in threading.enumerate()):
        assert time.monotonic() < end, "a connection was left open"
        time.sleep(0.05)


def test_the_last_word_of_a_session_is_enough(own: Server) -> None:
    """The server says that it ends the session, and the end of the connection may take a while longer."""
    link = connector(own.url()).dial()
    transport = link.connection.channel.connection
    end_sessions(own)
    while not transport.readable():
        time.sleep(0.01)
    transport.handle.consume_input()
    assert transport.told_end()
    link.close()
