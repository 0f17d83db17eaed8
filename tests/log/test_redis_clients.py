"""The log in Redis with all kinds of clients and servers; bad input is refused before anything is sent."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
import redis
import redis.asyncio

from holdfast.backends.redis.slots import slot_of
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.log import (
    ANY,
    NONE,
    Consumer,
    EventData,
    Folded,
    Position,
    aio,
    append,
    fold,
    read,
    tail,
    truncate,
    truncate_log,
)
from tests.log.test_guide import PAGE
from tests.log.test_input import BAD
from tests.support.redis_server import OTHERS, RedisServer, other, running
from tests.support.redis_topologies import with_cluster


def one(name: str, data: object = None) -> EventData:
    return EventData("happened", data, id=name)


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    redis_server.raw("FLUSHALL")
    redis_server.raw("SCRIPT", "FLUSH")
    return redis_server


@pytest.mark.parametrize(
    "options", [{}, {"decode_responses": True}, {"protocol": 3}, {"encoding": "latin-1", "decode_responses": True}]
)
def test_any_client_will_do(server: RedisServer, options: dict[str, Any]) -> None:
    with server.client(**options) as client:
        new = EventData("bezahlt ü", {"text": "ü \x00 😀"}, id="ïd €")
        assert append(client, "käufe/{7} €", new, expected=NONE, lease=2**63 - 1) == 1
        assert append(client, "käufe/{7} €", new, expected=NONE, lease=5) == 1
        with pytest.raises(FenceRejected) as caught:
            append(client, "käufe/{7} €", one("x"), expected=1, lease=2**63 - 2)
        assert (caught.value.resource, caught.value.mark) == ("log/käufe/{7} €", 2**63 - 1)
        (event,) = read(client, "käufe/{7} €")
        assert (event.stream, event.type, event.id, event.data) == (
            "käufe/{7} €",
            "bezahlt ü",
            "ïd €",
            {"text": "ü \x00 😀"},
        )
        consumer = Consumer(client, "abrechnung €", lease=3)
        assert consumer.poll() == [event] == tail(client)
        consumer.acknowledge(event.position)
        assert consumer.cursor() == event.position
        assert fold(client, "käufe/{7} €", lambda n, e: f"{n}€", "", snapshot="ü €", every=1) == Folded("€", 1)
        assert fold(client, "käufe/{7} €", lambda n, e: f"{n}€", "", snapshot="ü €") == Folded("€", 1)
        assert truncate(client, "käufe/{7} €", before=9) == 1


def test_the_log_in_a_cluster() -> None:
    """All keys lie in one slot; also with stream names that look as if they named another."""
    with with_cluster(3) as servers:
        with redis.RedisCluster(host="127.0.0.1", port=servers[0].port) as client:
            for stream in ("a", "{b}/c", "}{"):
                assert append(client, stream, [one("x"), one("y")], expected=NONE, lease=7) == 2
                assert fold(client, stream, lambda n, e: n + 1, 0, snapshot="{n}", every=1).state == 2
            consumer = Consumer(client, "{billing}", lease=7, partition=0, partitions=2)
            for event in consumer.poll():
                consumer.acknowledge(event.position)
            assert [event.id for event in tail(client)] == ["x", "y"] * 3
            assert truncate(client, "a", before=2) == 1
            last = tail(client, allow_truncated=True)[-1].position
            assert truncate_log(client, before=last) == 4
            keys: list[Any] = [key for node in servers for key in redis.Redis(port=node.port).keys("*")]
            assert len(keys) > 10
            assert len({slot_of(key) for key in keys}) == 1

        async def main() -> None:
            async with redis.asyncio.RedisCluster(host="127.0.0.1", port=servers[1].port) as client:
                assert await aio.append(client, "{d}", one("z"), expected=NONE, lease=7) == 1
                assert (await aio.read(client, "{d}"))[0].id == "z"
                assert len(await aio.tail(client, after=last)) == 1

        asyncio.run(main())


def use(client: Any) -> None:
    """Everything there is."""
    assert append(client, "s", [one("a"), one("b")], expected=NONE, lease=7) == 2
    for _ in range(2):
        assert fold(client, "s", lambda n, e: n + 1, 0, snapshot="n", every=1).state == 2
    parts = [Consumer(client, "parts", lease=7, partition=part, partitions=3) for part in range(3)]
    assert sorted(len(part.poll()) for part in parts) == [0, 0, 2]
    consumer = Consumer(client, "billing", lease=7)
    for event in consumer.poll():
        consumer.acknowledge(event.position)
    assert consumer.cursor() == tail(client)[-1].position
    assert len(read(client, "s")) == 2
    assert (truncate(client, "s", before=2), truncate_log(client, before=Position(2**62, 0))) == (1, 1)


@pytest.mark.parametrize("name", OTHERS)
def test_other_servers(name: str) -> None:
    with running(other(name)) as server, server.client() as client:
        use(client)


def test_a_user_needs_few_rights() -> None:
    """Those that docs/log.md names."""
    (words,) = re.findall(r"^`ACL SETUSER (.*)`$", PAGE.read_text(), re.MULTILINE)
    with running() as server, server.client() as client:
        client.execute_command("ACL", "SETUSER", *words.split())
        with redis.Redis(port=server.port, username="log", password="secret") as user:
            use(user)
            with pytest.raises(redis.exceptions.NoPermissionError):
                user.get("elsewhere")


@pytest.mark.parametrize(("stream", "what", "expected"), BAD)
def test_bad_input_is_refused_before_anything_is_sent(stream: Any, what: Any, expected: Any) -> None:
    client = redis.Redis(port=1)  # where nobody listens
    with pytest.raises(Misconfigured):
        append(client, stream, what, expected=expected)


def test_other_bad_input() -> None:
    client, awaited = redis.Redis(port=1), redis.asyncio.Redis(port=1)
    for call in (
        lambda: append(client, "s", one("a"), expected=ANY, lease=0),
        lambda: append(client.pipeline(), "s", one("a"), expected=ANY),
        lambda: append(redis.Redis, "s", one("a"), expected=ANY),
        lambda: append(client.connection_pool, "s", one("a"), expected=ANY),
        lambda: read(client, "s", after=-1),
        lambda: read(client, "s", limit=10**9),
        lambda: tail(client, after="1-2"),  # type: ignore[arg-type]
        lambda: truncate(client, "s", before=1.5),  # type: ignore[arg-type]
        lambda: truncate_log(client, before=Position(-1, 0)),
        lambda: fold(client, "s", lambda s, e: s, 0, snapshot=""),
        lambda: Consumer(client, "", lease=5),
        lambda: Consumer(client, "billing", lease=5).poll(0),
        lambda: Consumer(client, "billing", lease=5).acknowledge(7),  # type: ignore[arg-type]
    ):
        with pytest.raises(Misconfigured):
            call()
    with pytest.raises(Misconfigured, match=r"holdfast\.log\.aio$"):
        append(awaited, "s", one("a"), expected=ANY)
    with pytest.raises(Misconfigured, match=r"holdfast\.log$"):
        asyncio.run(aio.append(client, "s", one("a"), expected=ANY))
    with pytest.raises(Misconfigured, match="redis-py"):
        append(object(), "s", one("a"), expected=ANY)
