"""Replies of Redis that are lost, and requests that the client sends again unseen: no event twice, none lost, and no
lie about what was done.

Faults are put between the log and the real server: a request is carried out and its reply lost, lost before it is
carried out, or sent again by the client itself, as redis-py does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import redis
import redis.asyncio

from holdfast.errors import FenceRejected, OutcomeUnknown
from holdfast.log import (
    ANY,
    NONE,
    AlreadyAcknowledged,
    AppendConflict,
    Consumer,
    EventData,
    aio,
    append,
    fold,
    read,
    tail,
    truncate,
    truncate_log,
)
from holdfast.log.redis.keys import stream_key
from tests.cas.faulty import faulty
from tests.redis.proxy import proxied
from tests.support.redis_server import RedisServer, running

LOST = redis.ConnectionError("lost")
WAIT_S = 120.0


def one(name: str) -> EventData:
    return EventData("happened", id=name)


@contextmanager
def struck(
    server: RedisServer, fault: str, between: Callable[[], object] = str, lost: Exception = LOST
) -> Iterator[Any]:
    """A client whose next requests meet a fault."""

    class Struck(redis.Redis):
        def execute_command(self, *words: Any, **options: Any) -> Any:
            def send() -> Any:
                return redis.Redis.execute_command(self, *words, **options)  # type: ignore[no-untyped-call]

            return faulty(send, fault, lost, between)

    with server.client() as plain:
        tail(plain)
        with Struck(unix_socket_path=str(server.unix_path)) as client:
            yield client


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    """With all programs known, so that a request is one command."""
    redis_server.raw("FLUSHALL")
    with redis_server.client() as client:
        append(client, "warm", one("a"), expected=ANY)
        event = Consumer(client, "warm", lease=1).poll()[0]
        Consumer(client, "warm", lease=1).acknowledge(event.position)
        truncate(client, "warm", before=9)
        truncate_log(client, before=event.position)
    redis_server.raw("FLUSHALL")
    return redis_server


@pytest.mark.parametrize("expected", [NONE, ANY])
@pytest.mark.parametrize("lease", [None, 33])
def test_an_append_that_is_sent_again_is_one_append(server: RedisServer, expected: Any, lease: int | None) -> None:
    def others() -> None:
        with server.client() as client:
            append(client, "s", one("other"), expected=2, lease=34)

    with struck(server, "twice", others) as client:
        assert append(client, "s", [one("a"), one("b")], expected=expected, lease=lease) == 2
    with server.client() as client:
        assert [event.id for event in read(client, "s")] == ["a", "b", "other"]
        with pytest.raises(FenceRejected):
            append(client, "s", one("c"), expected=3, lease=33)


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("lost", [LOST, redis.TimeoutError("late"), redis.exceptions.ReadOnlyError("failed over")])
def test_an_append_without_a_reply_is_unknown_and_settled_by_the_same_again(
    server: RedisServer, fault: str, lost: Exception
) -> None:
    with struck(server, fault, lost=lost) as client, pytest.raises(OutcomeUnknown, match="same event ids") as caught:
        append(client, "s", one("a"), expected=NONE)
    assert caught.value.__cause__ is lost
    with server.client() as client:
        assert len(read(client, "s")) == (fault == "after")
        assert append(client, "s", one("a"), expected=NONE) == 1
        assert [event.id for event in read(client, "s")] == ["a"]


def test_a_refusal_of_the_server_is_raised_as_it_is(server: RedisServer) -> None:
    with server.client() as client:
        client.set(stream_key("s"), "x")
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            append(client, "s", one("a"), expected=NONE)
        assert tail(client) == []


def test_an_acknowledgement_that_is_sent_again_is_one(server: RedisServer) -> None:
    with server.client() as client:
        append(client, "s", [one("a"), one("b"), one("c")], expected=NONE)
        events = Consumer(client, "billing", lease=33).poll()

    def newer() -> None:
        with server.client() as client:
            Consumer(client, "billing", lease=34).poll()

    with struck(server, "twice") as client:
        Consumer(client, "billing", lease=33).acknowledge(events[0].position)
    with struck(server, "twice", newer) as client:
        Consumer(client, "billing", lease=33).acknowledge(events[1].position)
        with pytest.raises(FenceRejected):
            Consumer(client, "billing", lease=33).acknowledge(events[2].position)
    with server.client() as client:
        assert Consumer(client, "billing", lease=34).cursor() == events[1].position


def test_an_acknowledgement_without_a_reply_is_unknown(server: RedisServer) -> None:
    with server.client() as client:
        append(client, "s", [one("a"), one("b")], expected=NONE)
        events = Consumer(client, "billing", lease=33).poll()
    with struck(server, "after") as client, pytest.raises(OutcomeUnknown, match="cursor"):
        Consumer(client, "billing", lease=33).acknowledge(events[0].position)
    with server.client() as client:
        assert Consumer(client, "billing", lease=33).poll() == events[1:]


@pytest.mark.parametrize("by", ["stream", "log"])
def test_a_truncation_that_is_sent_again_removes_no_more(server: RedisServer, by: str) -> None:
    with server.client() as client:
        append(client, "s", [one(f"e{number}") for number in range(20)], expected=NONE)
        last = tail(client)[-1].position
    with struck(server, "twice") as client:
        removed = (
            truncate(client, "s", before=20, limit=5) if by == "stream" else truncate_log(client, before=last, limit=5)
        )
    assert removed == 5
    with server.client() as client:
        assert len(read(client, "s", after=5)) == 15


def test_many_append_behind_a_proxy_that_loses_replies(server: RedisServer) -> None:
    """With redis-py's own retries, as people have them, and threads and tasks. Each event is there once, and a consumer
    that follows meanwhile sees all of them in one order."""
    failed: list[BaseException] = []
    unknown: list[int] = []

    def settle(call: Callable[[], Any]) -> Any:
        end = time.monotonic() + WAIT_S
        while True:
            try:
                return call()
            except (OutcomeUnknown, redis.RedisError):
                unknown.append(1)
                assert time.monotonic() < end

    def write(port: int, number: int) -> None:
        try:
            with redis.Redis(port=port, socket_timeout=0.5) as client:
                for turn in range(25):
                    new = [one(f"{number}.{turn}.{half}") for half in "ab"]
                    while True:
                        version = settle(
                            lambda: fold(client, "s", lambda n, e: n + 1, 0, snapshot="n", every=9)
                        ).version
                        try:
                            settle(partial(append, client, "s", new, expected=version, lease=7))
                            break
                        except AppendConflict:
                            pass
        except BaseException as error:  # noqa: BLE001  raised by the test
            failed.append(error)

    async def write_as_task(port: int) -> None:
        async with redis.asyncio.Redis(port=port, socket_timeout=0.5) as client:
            for turn in range(25):
                while True:
                    try:
                        await aio.append(client, "t", one(f"t{turn}"), expected=turn)
                        break
                    except (OutcomeUnknown, redis.RedisError):
                        unknown.append(1)

    def follow(port: int, seen: list[str]) -> None:
        try:
            with redis.Redis(port=port, socket_timeout=0.5) as client:
                consumer = Consumer(client, "billing", lease=5)
                while len(seen) < 4 * 50 + 25:
                    for event in settle(lambda: consumer.poll(7)):
                        try:
                            settle(partial(consumer.acknowledge, event.position))
                        except AlreadyAcknowledged:
                            pass  # by the call before, whose reply was lost
                        seen.append(event.id)
        except BaseException as error:  # noqa: BLE001  raised by the test
            failed.append(error)

    seen: list[str] = []
    with proxied(server.port) as proxy:
        proxy.loss = 0.05
        threads = [threading.Thread(target=write, args=(proxy.port, number)) for number in range(4)]
        threads.append(threading.Thread(target=lambda: asyncio.run(write_as_task(proxy.port))))
        threads.append(threading.Thread(target=follow, args=(proxy.port, seen)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert proxy.lost > 5
    assert failed == []
    with server.client() as client:
        events = read(client, "s")
        assert [event.version for event in events] == list(range(1, 201))
        for number in range(4):
            mine = [event.id for event in events if event.id.startswith(f"{number}.")]
            assert mine == [f"{number}.{turn}.{half}" for turn in range(25) for half in "ab"]
        assert [event.id for event in read(client, "t")] == [f"t{turn}" for turn in range(25)]
        assert seen == [event.id for event in tail(client, limit=1000)]


def test_redis_is_killed_in_the_middle_of_appends() -> None:
    """With an AOF that is written before the reply: what was acknowledged is there, once, and versions have no hole."""
    acknowledged: list[str] = []
    failed: list[BaseException] = []
    end = time.monotonic() + WAIT_S

    def write(port: int, number: int) -> None:
        try:
            with redis.Redis(port=port, socket_timeout=5) as client:
                for turn in range(60):
                    while True:
                        try:
                            append(
                                client,
                                f"s{turn % 2}",
                                [one(f"{number}.{turn}a"), one(f"{number}.{turn}b")],
                                expected=ANY,
                            )
                            break
                        except (OutcomeUnknown, redis.RedisError):
                            assert time.monotonic() < end
                            time.sleep(0.02)
                    acknowledged.append(f"{number}.{turn}a")
        except BaseException as error:  # noqa: BLE001  raised by the test
            failed.append(error)

    with running(appendonly="yes", appendfsync="always") as killed:
        threads = [threading.Thread(target=write, args=(killed.port, number)) for number in range(3)]
        for thread in threads:
            thread.start()
        for part in (30, 80, 130):
            while len(acknowledged) < part and any(thread.is_alive() for thread in threads):
                time.sleep(0.005)
            killed.stop()
            killed.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert failed == []
        with killed.client() as client:
            found = [event for stream in ("s0", "s1") for event in read(client, stream)]
            assert [event.version for event in found] == [*range(1, 181), *range(1, 181)]
            assert len({event.id for event in found}) == 360 == len(tail(client, limit=1000))
            assert {event.id for event in found} >= set(acknowledged)
