"""What a line costs does not grow with those who stand in it; and nobody is told of what was not written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import redis

from holdfast.backends.queue_backend import Release, Renew, Take
from holdfast.backends.redis.codec import NOWHERE, Codec, Order, write
from holdfast.model import Claim, LockSpec
from tests.support.redis_server import RedisServer

MUTEX, READER, WRITER = (
    LockSpec("a", ttl=30.0),
    LockSpec("a", ttl=30.0, capacity=1_000_000, mode="read"),
    LockSpec("a", ttl=30.0, capacity=1_000_000, weight=1_000_000, mode="write"),
)
FEW, MANY, CROWD = 20, 2000, 9000


class Server:
    """The programs, called one by one."""

    def __init__(self, server: RedisServer) -> None:
        self.client = server.client()
        self._codec = Codec("t", "host", 7)

    def order(self, request: Any, wake: str = NOWHERE) -> Order:
        return write(self._codec, request, wake)

    def call(self, request: Any, wake: str = NOWHERE) -> Any:
        order = self.order(request, wake)
        words = order.words.split(b"\r\n")[1::2]
        program = order.program.plain or order.program  # as for a server that refuses each write by itself
        return order.read(self.client.execute_command("EVAL", program.source, *words))

    def take(self, spec: LockSpec, number: int, wake: str = NOWHERE) -> int:
        token: int = self.call(Take((claim(spec, number),), True), wake)[0].token
        return token

    def work(self, do: Callable[[], object]) -> tuple[int, int]:
        """How many commands the server carries out for this, also within programs, and how many bytes they say."""
        with self.client.monitor() as monitor:
            do()
            self.client.echo("that is all")
            count = size = 0
            while (said := monitor.next_command())["command"] != "ECHO that is all":
                if not said["command"].startswith("EVAL"):
                    count += 1
                    size += len(said["command"])
        return count, size


def claim(spec: LockSpec, number: int, token: int = 0) -> Claim:
    made = Claim(spec, f"0123456789abcdef-{number:x}", "actor")
    made.token = token
    return made


@pytest.fixture
def ours(server: RedisServer) -> Iterator[Server]:
    made = Server(server)
    made.client.flushall()
    yield made
    made.client.config_set("min-replicas-to-write", 0)
    made.client.flushall()
    made.client.close()


def hand_over(server: Server, spec: LockSpec, waiting: int) -> None:
    """The holder lets go, another comes, one at the end leaves, one in the middle looks again, the holder renews."""
    server.call(Release(claim(spec, 0), 0.0))
    server.take(spec, waiting + 1)
    server.call(Release(claim(spec, waiting + 1), 0.0))
    server.take(spec, waiting // 2)
    server.call(Renew((claim(spec, 1, token=1),)))


def come_and_go(server: Server, holding: int) -> None:
    server.take(READER, holding)
    server.call(Release(claim(READER, 3), 0.0))
    server.take(WRITER, holding + 1)
    server.call(Release(claim(READER, 4), 0.0))


def assert_alike(few: tuple[int, int], many: tuple[int, int]) -> None:
    assert few[0] > 0
    assert many[0] <= few[0] + 2, (few, many)
    assert many[1] <= few[1] + 200, (few, many)  # longer numbers


@pytest.mark.parametrize(("first", "others"), [(MUTEX, MUTEX), (READER, WRITER), (WRITER, WRITER)])
def test_few_commands_however_many_wait(ours: Server, first: LockSpec, others: LockSpec) -> None:
    counted: list[tuple[int, int]] = []
    for waiting in (FEW, MANY):
        ours.client.flushall()
        ours.take(first, 0)
        for number in range(1, waiting + 1):
            assert not ours.take(others, number)
        hand_over(ours, others, waiting)  # what is done once in a while is done
        ours.take(others, 0)
        counted.append(ours.work(partial(hand_over, ours, others, waiting)))
    assert_alike(*counted)


def test_few_commands_however_many_hold(ours: Server) -> None:
    counted: list[tuple[int, int]] = []
    for holding in (FEW, MANY):
        ours.client.flushall()
        for number in range(holding):
            assert ours.take(READER, number)
        counted.append(ours.work(partial(come_and_go, ours, holding)))
    assert_alike(*counted)


def test_nothing_is_left_of_those_who_have_left(ours: Server) -> None:
    ours.take(MUTEX, 0)
    for number in range(1, MANY):
        ours.take(MUTEX, number)
    for number in range(MANY - 1, -1, -1):
        ours.call(Release(claim(MUTEX, number), 0.0))
    assert ours.client.type("t/line/a") == b"string"
    assert re.fullmatch(rb"\d{16}([rxe][01]\d{16}\S+)?", ours.client.get("t/line/a"))


@pytest.mark.parametrize("spec", [LockSpec("a", ttl=3.0), LockSpec("a", ttl=3.0, capacity=1_000_000, mode="read")])
def test_all_of_a_crowd_may_be_gone_at_once(ours: Server, spec: LockSpec) -> None:
    """A process with very many waiters, or readers, was killed: whoever comes next drops them all in one step."""
    ours.take(spec, 0)
    pipeline = ours.client.pipeline(transaction=False)
    for number in range(CROWD):
        order = ours.order(Take((claim(spec, number),), True))
        pipeline.evalsha(order.program.sha.decode(), *order.words.split(b"\r\n")[1::2])
    pipeline.execute()
    assert ours.client.hlen("t/line/a") > CROWD
    time.sleep(3.1)
    assert ours.take(spec, CROWD)
    assert ours.client.hlen("t/line/a") < 20


def test_nobody_is_told_of_a_grant_that_is_not_written(ours: Server) -> None:
    listener = ours.client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("t/wake/1")
    listener.get_message(timeout=5.0)
    assert ours.take(MUTEX, 0)
    assert not ours.take(MUTEX, 1, "t/wake/1")
    ours.client.config_set("min-replicas-to-write", 1)
    with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
        ours.call(Release(claim(MUTEX, 0), 0.0))
    assert listener.get_message(timeout=0.2) is None
    ours.client.config_set("min-replicas-to-write", 0)
    assert ours.call(Release(claim(MUTEX, 0), 0.0))
    told = listener.get_message(timeout=5.0)
    assert told is not None
    assert told["data"].split()[0] == claim(MUTEX, 1).owner.encode()
    listener.close()


def test_a_user_who_may_not_write_hashes_ends_no_hold(ours: Server, server: RedisServer) -> None:
    """Rights that were given for an earlier version: a line that nobody waits in is a string."""
    rights = "+eval +evalsha +mget +set +del +exists +hget +time"
    ours.client.execute_command("ACL", "SETUSER", "old", "on", ">pass", "~*", "&*", *rights.split())
    token = ours.take(MUTEX, 0)
    before = ours.client.get("t/line/a")
    order = ours.order(Take((claim(MUTEX, 1),), True))
    old = server.client(username="old", password="pass")
    with pytest.raises(redis.ResponseError, match="can't run this command"):
        old.execute_command("EVAL", order.program.source, *order.words.split(b"\r\n")[1::2])
    old.close()
    assert ours.client.get("t/line/a") == before
    assert ours.call(Renew((claim(MUTEX, 0, token=token),))) == ["held"]
    ours.client.execute_command("ACL", "DELUSER", "old")
