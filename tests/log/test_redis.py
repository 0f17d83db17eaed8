"""The log in Redis: what is particular to it. What it promises as the databases do is in the other files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast.aio
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced.redis import RedisFence
from holdfast.log import (
    ANY,
    NONE,
    START,
    AlreadyAcknowledged,
    AppendConflict,
    Consumer,
    EventData,
    EventIdConflict,
    Folded,
    Position,
    RecordedEvent,
    Truncated,
    aio,
    append,
    read,
    tail,
    truncate,
    truncate_log,
)
from holdfast.log.redis import flows
from holdfast.log.redis.keys import stream_key
from tests.log.databases import Database
from tests.log.test_relay import WAIT_S, left
from tests.support.redis_server import RedisServer


def one(name: str, data: object = None) -> EventData:
    return EventData("happened", data, id=name)


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    redis_server.raw("FLUSHALL")
    redis_server.raw("SCRIPT", "FLUSH")
    return redis_server


def test_the_whole_log_with_asyncio(server: RedisServer) -> None:
    async def main() -> None:
        async with redis.asyncio.Redis(unix_socket_path=str(server.unix_path)) as client:
            new = [one("a", 2), one("b", 3)]
            for lease in (5, 4):
                assert await aio.append(client, "s", new, expected=NONE, lease=lease) == 2
            with pytest.raises(AppendConflict) as caught:
                await aio.append(client, "s", one("c"), expected=1)
            assert caught.value.actual == 2
            with pytest.raises(EventIdConflict):
                await aio.append(client, "s", [new[0], one("c")], expected=ANY)
            with pytest.raises(FenceRejected):
                await aio.append(client, "s", one("c"), expected=2, lease=4)
            await aio.append(client, "t", one("d"), expected=ANY)
            seen = await aio.tail(client)
            assert [event.id for event in seen] == ["a", "b", "d"]
            assert await aio.tail(client, after=seen[1].position) == seen[2:]
            folded = await aio.fold(client, "s", lambda n, event: n + event.data, 0, snapshot="sum", every=1)
            assert folded == Folded(5, 2)
            consumer = aio.Consumer(client, "billing", lease=5)
            assert await consumer.poll(2) == seen[:2]
            await consumer.acknowledge(seen[1].position)
            with pytest.raises(AlreadyAcknowledged):
                await consumer.acknowledge(seen[0].position)
            assert await aio.Consumer(client, "billing", lease=6).poll() == seen[2:]
            for call in (consumer.poll, consumer.cursor, lambda: consumer.acknowledge(seen[2].position)):
                with pytest.raises(FenceRejected, match="log-consumer/billing"):
                    await call()
            assert await aio.truncate(client, "s", before=2) == 1
            assert await aio.truncate_log(client, before=seen[2].position) == 1
            with pytest.raises(Truncated):
                await aio.read(client, "s")

    asyncio.run(main())


def test_the_relay_with_asyncio(redis_database: Database, tmp_path: Any) -> None:
    connection = redis_database.connect()
    for number in range(12):
        append(connection, f"s{number % 3}", one(f"e{number}", number), expected=ANY)

    async def main() -> None:
        stop, seen = asyncio.Event(), []

        async def connect() -> Any:
            return redis.asyncio.Redis(unix_socket_path=redis_database.address[0])

        async def publish(event: RecordedEvent) -> None:
            seen.append(event.data)
            if len(seen) == 12:
                stop.set()

        async with holdfast.aio.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
            relay = aio.Relay(connect, publish, lock=locks.lock("outbox", ttl=30), idle=0.01, base=0.001, limit=5)
            await asyncio.wait_for(relay.run(stop), WAIT_S)
        assert seen == list(range(12))

    asyncio.run(main())
    assert left(redis_database) == []


def test_many_tasks_expect_one_version(server: RedisServer) -> None:
    actual: list[int] = []

    async def main() -> list[RecordedEvent]:
        async with redis.asyncio.Redis(unix_socket_path=str(server.unix_path)) as client:

            async def add(number: int) -> None:
                while True:
                    version = (await aio.fold(client, "s", lambda n, e: n + 1, 0, snapshot="n", every=5)).version
                    try:
                        assert await aio.append(client, "s", one(f"e{number}"), expected=version) == version + 1
                        return
                    except AppendConflict as conflict:
                        actual.append((conflict.actual or 0) - version)

            await asyncio.wait_for(asyncio.gather(*(add(number) for number in range(40))), WAIT_S)
            return await aio.read(client, "s")

    found = asyncio.run(main())
    assert min(actual) > 0, "the real version is a later one"
    assert [event.version for event in found] == list(range(1, 41))
    assert {event.id for event in found} == {f"e{number}" for number in range(40)}


def test_who_fences_the_key_of_a_stream_fences_its_appends(server: RedisServer) -> None:
    with server.client() as client:
        append(client, "s", one("a"), expected=NONE, lease=5)
        RedisFence(client).claim(stream_key("s"), 6)
        with pytest.raises(FenceRejected):
            append(client, "s", one("b"), expected=1, lease=5)
        assert append(client, "s", one("b"), expected=1, lease=6) == 2


def test_a_refused_append_changes_nothing(server: RedisServer) -> None:
    with server.client() as client:
        append(client, "s", one("a"), expected=NONE, lease=5)
        before = {key: client.dump(key) for key in client.keys("*")}
        for events, expected, lease in ((one("b"), 7, 9), (one("b"), NONE, 9), (one("a", 1), ANY, 9), (one("b"), 1, 4)):
            with pytest.raises((AppendConflict, EventIdConflict, FenceRejected)):
                append(client, "s", events, expected=expected, lease=lease)
        with pytest.raises(AppendConflict):
            append(client, "new", one("b"), expected=1)
        kept = client.keys("holdfast/refus*")
        assert {key: client.dump(key) for key in client.keys("*") if key not in kept} == before
        assert len(kept) == 1  # the refusal itself, which outlives whoever was refused


def test_positions_of_elsewhere_are_taken(server: RedisServer) -> None:
    with server.client() as client:
        append(client, "s", one("a"), expected=NONE)
        assert tail(client, after=Position(2**63 - 1, 2**63 - 1)) == []
        assert truncate_log(client, before=START) == 0
        consumer = Consumer(client, "billing", lease=5)
        assert consumer.poll(after=Position(2**63 - 1, 2**63 - 1)) == []
        with pytest.raises(Misconfigured, match="no event"):
            consumer.acknowledge(Position(2**63 - 1, 2**63 - 1))
        assert consumer.cursor() == START
        assert truncate_log(client, before=Position(2**63 - 1, 0)) == 1


def test_the_clock_may_go_back(server: RedisServer) -> None:
    """Positions only rise: Redis gives no id below the last one."""
    with server.client() as client:
        append(client, "s", one("a"), expected=NONE)
        (event,) = tail(client)
        client.execute_command("XSETID", "holdfast/log/{log}/all", f"{event.position.major + 10**9}-7")
        append(client, "s", [one("b"), one("c")], expected=1)
        assert [e.position.minor for e in tail(client, after=event.position)] == [8, 9]


def test_pages_are_bounded_in_bytes(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And give what one page would."""
    with server.client() as client:
        append(client, "s", [one(f"e{number}", "x" * 1000) for number in range(100)], expected=NONE)
        consumer = Consumer(client, "billing", lease=5)
        whole = read(client, "s", limit=90), tail(client, limit=90), consumer.poll(90)
        monkeypatch.setattr(flows, "PAGE_BYTES", 7000)
        calls: list[Callable[[], list[RecordedEvent]]] = [
            lambda: read(client, "s", limit=90),
            lambda: tail(client, limit=90),
            lambda: consumer.poll(90),
        ]
        for call, expected in zip(calls, whole, strict=True):
            client.config_resetstat()
            assert call() == expected
            assert client.info("commandstats")["cmdstat_evalsha"]["calls"] > 4
        assert len(tail(client, limit=1000)) == 100 == len(read(client, "s", limit=1000)) == len(consumer.poll(1000))
        monkeypatch.setattr(flows, "PAGE_COUNT", 9)
        assert (read(client, "s", limit=90), tail(client, limit=90), consumer.poll(90)) == whole
        assert truncate(client, "s", before=50) == 49
        assert truncate_log(client, before=whole[1][69].position, limit=19) == 19
        assert [event.version for event in tail(client, allow_truncated=True)] == list(range(69, 101))
