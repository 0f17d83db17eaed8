"""A fenced command whose reply is lost has its effect once, though redis-py sends it again by itself.

The proxy eats one reply and ends the connection, after the server has carried the command out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from holdfast.errors import OutcomeUnknown
from holdfast.fenced.redis import AsyncRedisFence, RedisFence, programs
from holdfast.fenced.redis.programs import KEPT_MS, LONGEST_REPLY_BYTES
from tests.redis.faces import both, run
from tests.redis.proxy import Proxy, proxied
from tests.support.redis_server import RedisServer


class OneLoss:
    """The first reply is lost, and the connection ends with it; before that, something else happens."""

    def __init__(self, between: Callable[[], object]) -> None:
        self._between = between
        self._left = [0.0, 0.0]

    def random(self) -> float:
        if len(self._left) == 2:
            self._between()
        return self._left.pop() if self._left else 1.0


def lose_one(proxy: Proxy, between: Callable[[], object]) -> None:
    proxy._chance = OneLoss(between)  # type: ignore[assignment]
    proxy.loss = 0.5


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[Proxy]:
    server.raw("FLUSHALL")
    with proxied(server.port) as found:
        yield found


def lost(face: str, proxy: Proxy, command: tuple[Any, ...], lua: str = "", between: Callable[[], object] = str) -> Any:
    """Claim with the token 1, then a command (or a program) whose reply is lost once, before `between`."""

    async def with_asyncio() -> Any:
        async with redis.asyncio.Redis(port=proxy.port) as client:
            fence = AsyncRedisFence(client)
            order, other = await fence.claim("stock", 1), await fence.claim("other", 1)
            await (other.run(lua, args=command) if lua else other.execute(*command))  # the server knows the program now
            lose_one(proxy, between)
            return await (order.run(lua, args=command) if lua else order.execute(*command))

    if face == "asyncio":
        return run(with_asyncio())
    with redis.Redis(port=proxy.port) as client:
        fence = RedisFence(client)
        order, other = fence.claim("stock", 1), fence.claim("other", 1)
        other.run(lua, args=command) if lua else other.execute(*command)
        lose_one(proxy, between)
        return order.run(lua, args=command) if lua else order.execute(*command)


@both
@pytest.mark.parametrize(
    ("command", "lua", "answer", "stored"),
    [
        (("INCRBY", 5), "", 15, b"15"),
        (("APPEND", "!"), "", 3, b"10!"),
        (("SET", "7", "XX", "GET"), "", b"10", b"7"),
        (("DEL",), "", 1, None),
        ((5,), "return {redis.call('INCRBY', KEYS[1], ARGV[1]), false, 'x'}", [15, None, b"x"], b"15"),
        ((5,), "redis.call('INCRBY', KEYS[1], ARGV[1])", None, b"15"),
    ],
    ids=["INCRBY", "APPEND", "SET", "DEL", "a program", "no answer"],
)
def test_it_is_done_once_and_answers_as_if_nothing_had_happened(
    server: RedisServer, proxy: Proxy, face: str, command: tuple[Any, ...], lua: str, answer: object, stored: object
) -> None:
    server.client().set("stock", 10)
    assert lost(face, proxy, command, lua) == answer
    assert proxy.lost == 1
    assert server.client().get("stock") == stored


@both
def test_what_was_done_before_a_newer_claim_is_not_told_as_refused(
    server: RedisServer, proxy: Proxy, face: str
) -> None:
    claim = RedisFence(server.client()).claim
    assert lost(face, proxy, ("INCRBY", 5), between=lambda: claim("stock", 2).execute("INCRBY", 100)) == 5
    assert server.client().get("stock") == b"105"


@both
def test_a_read_is_read_again(server: RedisServer, proxy: Proxy, face: str) -> None:
    server.client().set("stock", 10)
    assert lost(face, proxy, ("get",)) == b"10"
    assert server.client().keys("holdfast/receipt/*") == []


@both
def test_a_reply_that_is_too_long_to_be_kept_is_told_as_lost(server: RedisServer, proxy: Proxy, face: str) -> None:
    program = f"redis.call('INCR', KEYS[1]); return string.rep('x', {LONGEST_REPLY_BYTES})"
    with pytest.raises(OutcomeUnknown, match="done once"):
        lost(face, proxy, (), program)
    assert server.client().get("stock") == b"1"


@both
def test_a_reply_that_may_be_that_of_a_copy_without_a_receipt_is_not_believed(
    server: RedisServer, proxy: Proxy, face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget() -> None:
        monkeypatch.setattr(programs, "TRUSTED_S", -1.0)
        server.client().delete(*server.client().keys("holdfast/receipt/*"))

    with pytest.raises(OutcomeUnknown, match="done twice"):
        lost(face, proxy, ("INCRBY", 5), between=forget)


def test_receipts_go_by_themselves(server: RedisServer) -> None:
    client = server.client()
    stock = RedisFence(client).claim("stock", 1)
    for _ in range(3):
        stock.execute("INCR")
    receipts = client.keys("holdfast/receipt/*")
    assert len(receipts) == 3
    assert all(0 < client.pttl(receipt) <= KEPT_MS for receipt in receipts)
