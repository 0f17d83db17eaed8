"""What is special about registers on Redis: other writers, expiry, fields, receipts, clusters, forks, clients."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast
import holdfast.cas.aio
from holdfast import cas
from holdfast.backends.redis.slots import slot_of
from holdfast.cas.redis.requests import KEPT_MS
from holdfast.errors import Misconfigured
from holdfast.fenced.redis.programs import key_beside
from tests.redis.faces import run
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import with_cluster


def test_writers_that_know_nothing_of_it_are_noticed(client: Any) -> None:
    client.set("n", 5)
    seen: list[int] = []

    def change(old: int) -> int:
        seen.append(old)
        if len(seen) == 1:
            client.incr("n")
        return old * 2

    assert cas.RedisKey(client, "n", cas.INTEGER).update(change) == 12
    assert seen == [5, 6]


def test_a_cancelled_update_leaves_the_register_as_good_as_before(client: Any, redis_server: RedisServer) -> None:
    """Cancelled at any moment: in a read, in a write, in a pause."""

    async def main() -> None:
        async with redis.asyncio.Redis(unix_socket_path=str(redis_server.unix_path)) as own:
            counter = holdfast.cas.aio.RedisKey(own, "n", cas.INTEGER, retry=cas.Retry(attempts=1000, timeout=100))
            await counter.create(0)
            done = cancelled = 0
            for turns in range(60):
                task = asyncio.ensure_future(counter.update(lambda old: old + 1))
                for _ in range(turns % 12):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                    done += 1
                except asyncio.CancelledError:
                    cancelled += 1
            value = (await counter.read()).value
            assert done <= value <= done + cancelled
            assert await counter.update(lambda old: old + 1) == value + 1

    run(main())


def test_the_expiry_of_a_key_stays(client: Any) -> None:
    client.set("n", 5, px=60_000)
    cas.RedisKey(client, "n", cas.INTEGER).update(lambda old: old + 1)
    client.hset("h", "n", 5)
    client.pexpire("h", 60_000)
    cas.RedisHash(client, "h", cas.INTEGER).update(lambda old: {"n": old["n"] + 1})
    assert 0 < client.pttl("n") <= 60_000
    assert 0 < client.pttl("h") <= 60_000


def test_receipts_do_not_pile_up(client: Any) -> None:
    counter = cas.RedisKey(client, "n", cas.INTEGER)
    for _ in range(50):
        counter.update(lambda old: old + 1, default=0)
        with pytest.raises(cas.VersionConflict):
            counter.create(0)
    receipts = client.keys("holdfast/cas/*")
    assert len(receipts) == 1
    assert 0 < client.pttl(receipts[0]) <= KEPT_MS
    assert sorted(client.keys()) == sorted([b"n", *receipts])


def test_a_forked_child_has_receipts_of_its_own(client: Any, redis_server: RedisServer) -> None:
    counter = cas.RedisKey(client, "n", cas.INTEGER)
    counter.create(0)
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    else:
        try:
            os._exit(0 if counter.update(lambda old: old + 1) == 1 else 1)
        finally:
            os._exit(2)
    assert counter.update(lambda old: old + 1) == 2
    assert len(client.keys("holdfast/cas/*")) == 2


@pytest.mark.parametrize("key", ["a", "{a}b", "a}b", "{}a", "}{", "ä}ö"])
def test_the_receipt_is_in_the_slot_of_its_key(key: str) -> None:
    assert slot_of(f"{key_beside('cas', key)}/0".encode()) == slot_of(key.encode())


def test_in_a_cluster() -> None:
    with with_cluster() as nodes:
        client: Any = redis.RedisCluster(host="127.0.0.1", port=nodes[0].port)
        for name in ("a", "b}c", "{d}e", "f"):
            counter = cas.RedisKey(client, name, cas.INTEGER)
            assert counter.update(lambda old: old + 1, default=0, lease=5) == 1
            assert counter.update(lambda old: old + 1, lease=5) == 2
            with pytest.raises(cas.FenceRejected):
                counter.update(lambda old: old + 1, lease=4)
            order = cas.RedisHash(client, f"{name}/h", cas.TEXT, version_field="version")
            order.create({"state": "new"}, lease=5)
            assert order.update(lambda old: {"state": old["state"] + "er"}) == {"state": "newer"}
        client.close()

        async def main() -> None:
            cluster = redis.asyncio.RedisCluster(host="127.0.0.1", port=nodes[0].port)
            counter = holdfast.cas.aio.RedisKey(cluster, "a", cas.INTEGER)
            assert await counter.update(lambda old: old + 1, lease=6) == 3
            order = holdfast.cas.aio.RedisHash(cluster, "f/h", cas.TEXT)
            assert (await order.read()).value == {"state": "newer", "version": "2"}
            await cluster.aclose()

        run(main())


def test_with_a_lease(client: Any, redis_server: RedisServer) -> None:
    counter = cas.RedisKey(client, "stock:7", cas.INTEGER)
    with holdfast.connect(redis_server.url) as locks:
        old = locks.lock("stock/7", ttl=30).acquire()
        counter.update(lambda n: n + 1, default=0, lease=old)
        assert locks.evict("stock/7", old.token)
        new = locks.lock("stock/7", timeout=30).acquire()
        counter.update(lambda n: n + 1, lease=new)
        with pytest.raises(cas.FenceRejected):
            counter.update(lambda n: n + 1, lease=old)
    assert client.get("stock:7") == b"2"


def test_other_codecs_and_encodings(client: Any, redis_server: RedisServer) -> None:
    note = cas.RedisKey(redis_server.client(decode_responses=True, encoding="latin-1"), "t", cas.TEXT)
    note.create("grün")
    assert client.get("t") == "grün".encode()
    assert note.update(lambda old: old + "er") == "grüner"
    config = cas.RedisKey(client, "j", cas.JSON)
    client.set("j", b'{ "a" : 1 }')  # not as we would write it
    assert config.update(lambda old: {**old, "b": [None, 2.5]}) == {"a": 1, "b": [None, 2.5]}
    with pytest.raises(Misconfigured, match="which is not a whole number"):
        cas.RedisKey(client, "j", cas.INTEGER).update(lambda old: old)
    with pytest.raises(Misconfigured, match="cannot be written"):
        config.update(lambda old: float("nan"))
    with pytest.raises(Misconfigured, match="made str"):
        cas.RedisKey(client, "x", cas.ValueCodec("wrong", str, str)).create("x")  # type: ignore[arg-type]


def test_a_change_in_place_that_returns_nothing_destroys_nothing(client: Any) -> None:
    config = cas.RedisKey(client, "j", cas.JSON)
    config.create({"a": 1})
    with pytest.raises(Misconfigured, match="returned None"):
        config.update(lambda old: old.update(a=2))
    assert config.swap(None, config.read().version).value is None  # meant


def test_a_conflict_does_not_tell_the_value(client: Any) -> None:
    secret = cas.RedisKey(client, "s", cas.TEXT)
    version = secret.create("hunter2").version
    secret.update(lambda old: old + "!")
    with pytest.raises(cas.VersionConflict) as conflict:
        secret.swap("x", version)
    assert "hunter2" not in str(conflict.value)


STALE = """
import sys, time
import holdfast, redis
from holdfast import cas

def change(old):
    print("read", old, flush=True)
    sys.stdin.readline()
    return old + 1

with holdfast.connect(sys.argv[1]) as locks:
    lease = locks.lock("stock", ttl=60).acquire()
    counter = cas.RedisKey(redis.Redis.from_url(sys.argv[1]), "n", cas.INTEGER)
    try:
        counter.update(change, lease=lease)
    except cas.FenceRejected:
        print("refused", flush=True)
"""


def test_a_process_that_slept_through_the_end_of_its_lease_is_refused(client: Any, redis_server: RedisServer) -> None:
    client.set("n", 5)
    program = [sys.executable, "-c", STALE, redis_server.url]
    stale = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert stale.stdout is not None
    assert stale.stdout.readline() == "read 5\n"
    stale.send_signal(signal.SIGSTOP)
    with holdfast.connect(redis_server.url) as locks:
        (found,) = locks.survey("stock")
        token = found.holders[0].token
        assert token is not None
        assert locks.evict("stock", token)
        with locks.lock("stock", timeout=60) as lease:
            newer = cas.RedisKey(client, "n", cas.INTEGER)
            newer.update(lambda old: old + 100, lease=lease)
            newer.update(lambda old: old - 100, lease=lease)  # the value is as the stale one has read it
            stale.send_signal(signal.SIGCONT)
            assert stale.communicate("go on\n", timeout=120)[0] == "refused\n"
    assert client.get("n") == b"5"


def test_what_is_no_client_and_no_key_is_refused(client: Any) -> None:
    wrong: list[Any] = [
        lambda: cas.RedisKey("redis://127.0.0.1", "n", cas.INTEGER),
        lambda: cas.RedisKey(redis.Redis, "n", cas.INTEGER),
        lambda: cas.RedisKey(redis.asyncio.Redis(), "n", cas.INTEGER),
        lambda: cas.RedisKey(client.pipeline(), "n", cas.INTEGER),
        lambda: holdfast.cas.aio.RedisHash(client, "n", cas.INTEGER),
        lambda: cas.RedisKey(client, "", cas.INTEGER),
        lambda: cas.RedisKey(client, b"n", cas.INTEGER),  # type: ignore[arg-type]
        lambda: cas.RedisHash(client, "h", cas.TEXT, fields="paid"),
        lambda: cas.RedisHash(client, "h", cas.TEXT, fields=[]),
        lambda: cas.RedisHash(client, "h", cas.TEXT, fields=["v"], version_field="v"),
        lambda: cas.RedisHash(client, "h", cas.TEXT, version_field=""),
        lambda: cas.RedisHash(client, "h", cas.TEXT).create({}),
        lambda: cas.RedisHash(client, "h", cas.TEXT).create("x"),  # type: ignore[arg-type]
        lambda: cas.RedisHash(client, "h", cas.TEXT, fields=["a"]).create({"b": "x"}),
        lambda: cas.RedisHash(client, "h", cas.TEXT, version_field="v").create({"v": "x"}),
        lambda: cas.Retry(attempts=0),
        lambda: cas.Retry(timeout=-1),
        lambda: cas.Retry(base=float("nan")),
    ]
    for attempt in wrong:
        with pytest.raises(Misconfigured):
            attempt()
    assert client.keys() == []
