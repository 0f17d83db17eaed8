"""The fence for Redis: claim before you read; a stale holder changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast
from holdfast.backends.redis.slots import slot_of
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced.redis import AsyncRedisFence, RedisFence
from holdfast.fenced.redis.programs import mark_key
from tests.redis.faces import run
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import with_cluster

BIG = 2**63 - 1
"""Neighbours of it are one number to Lua."""


def test_a_stale_holder_is_refused_and_changes_nothing(server: RedisServer) -> None:
    client = server.client()
    fence = RedisFence(client)
    with holdfast.connect(server.url) as locks:
        old = locks.lock("orders/7", ttl=30).acquire()
        order = fence.claim("order:7", old)
        order.hset({"paid": 100})
        assert locks.evict("orders/7", old.token)
        new = locks.lock("orders/7", timeout=5).acquire()
        newer = fence.claim("order:7", new)
        assert newer.hget("paid") == b"100"
        for attempt in (
            lambda: order.hset({"paid": 0}),
            lambda: order.hdel("paid"),
            order.delete,
            order.hgetall,
            lambda: order.run("return redis.call('DEL', KEYS[1])"),
            lambda: fence.claim("order:7", old),
        ):
            refuse(attempt, old.token, new.token)
        assert newer.hgetall() == {b"paid": b"100"}
        assert fence.mark("order:7") == new.token


def refuse(attempt: Callable[[], object], token: int, mark: int | None) -> None:
    with pytest.raises(FenceRejected) as refusal:
        attempt()
    assert (refusal.value.token, refusal.value.mark) == (token, mark)


def test_a_stale_write_between_the_new_holders_read_and_write_is_lost_by_nobody(server: RedisServer) -> None:
    """Which is why the claim comes before the read, and a check on write is not enough."""
    fence = RedisFence(server.client())
    stale = fence.claim("balance", 1)
    stale.set(10)
    fresh = fence.claim("balance", 2)
    seen = int(fresh.get())
    refuse(lambda: stale.set(50), 1, 2)
    fresh.set(seen + 5)
    assert fresh.get() == b"15"


def test_tokens_are_compared_exactly(server: RedisServer) -> None:
    fence = RedisFence(server.client())
    older = fence.claim("a", BIG - 1)
    fence.claim("a", BIG)
    refuse(lambda: older.set("x"), BIG - 1, BIG)
    refuse(lambda: fence.claim("a", 9), 9, BIG)
    with pytest.raises(Misconfigured):
        fence.claim("a", 0)
    with pytest.raises(Misconfigured):
        fence.claim("", 1)


def test_without_its_mark_a_key_takes_no_writes(server: RedisServer) -> None:
    client = server.client()
    key = RedisFence(client).claim("a", 5)
    client.delete(mark_key("a"))
    refuse(lambda: key.set("x"), 5, None)
    assert client.get("a") is None


def test_a_program_of_the_users_own(server: RedisServer) -> None:
    client = server.client(decode_responses=True)
    key = RedisFence(client).claim("{stock}/a", 5)
    key.set(7)
    move = """
    local left = redis.call('DECRBY', KEYS[1], ARGV[1])
    redis.call('INCRBY', KEYS[2], ARGV[1])
    return left
    """
    assert key.run(move, keys=["{stock}/b"], args=[3]) == 4
    assert client.get("{stock}/b") == "3"
    assert key.run("return nil") is None
    assert key.execute("INCRBY", 5) == 9
    with pytest.raises(redis.ResponseError):
        key.execute("HGET", "of a string")


def test_asyncio(server: RedisServer) -> None:
    async def main() -> None:
        async with redis.asyncio.Redis(port=server.port) as client:
            fence = AsyncRedisFence(client)
            old = await fence.claim("a", 5)
            await old.set("x", px=60_000)
            new = await fence.claim("a", 6)
            with pytest.raises(FenceRejected):
                await old.set("y")
            assert await new.get() == b"x"
            assert await new.delete()
            await new.hset({"f": 1, "g": 2})
            assert await new.hget("f") == b"1"
            assert await new.hdel("f") == 1
            assert await new.hgetall() == {b"g": b"2"}
            assert await fence.mark("a") == 6
            assert await fence.mark("b") is None

    run(main())


@pytest.mark.parametrize("key", ["a", "{a}b", "x{a}", "a}b", "{}a", "}{", "{", "}", "a{}b}c", "ä}ö"])
def test_the_mark_is_in_the_slot_of_its_key(key: str) -> None:
    assert slot_of(mark_key(key).encode()) == slot_of(key.encode())


def test_in_a_cluster() -> None:
    with with_cluster() as nodes:
        client: Any = redis.RedisCluster(host="127.0.0.1", port=nodes[0].port)
        fence = RedisFence(client)
        for name in ("a", "b}c", "{d}e", "f"):
            key = fence.claim(name, 5)
            key.set(name)
            fence.claim(name, 6)
            refuse(lambda key=key: key.set("x"), 5, 6)  # type: ignore[misc]
            assert client.get(name) == name.encode()
        client.close()
