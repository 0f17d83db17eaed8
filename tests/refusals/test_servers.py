"""Redis, etcd and ZooKeeper keep what their fences refuse: a count and the last few, at no cost to who is let in."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
import redis.asyncio

import holdfast
from holdfast import cas
from holdfast.errors import FenceRejected
from holdfast.fenced.etcd import AsyncEtcdFence, EtcdFence, gateway
from holdfast.fenced.redis import AsyncRedisFence, RedisFence
from holdfast.fenced.refusal import LAST_COUNT, RefusalRecord
from holdfast.fenced.zookeeper import ZooKeeperFence
from holdfast.log import ANY, EventData, append
from holdfast.refusals import read_refusals
from tests.etcd.cluster import Cluster, b64
from tests.etcd.secured import PASSWORD, USER, with_password
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import with_cluster
from tests.zookeeper.ensemble import Ensemble

ENGINES = ("redis", "etcd", "zookeeper")
_numbers = itertools.count()


class Fenced:
    """One server, its fence, and a resource that nobody else uses."""

    def __init__(self, url: str, fence: Any, resource: str) -> None:
        self.url, self.fence, self.resource = url, fence, resource

    def refuse(self, holder: Any) -> None:
        with pytest.raises(FenceRejected):
            self.fence.claim(self.resource, holder)

    def record(self) -> RefusalRecord | None:
        return next((each for each in read_refusals(self.url, self.resource)), None)


@pytest.fixture(params=ENGINES)
def fenced(request: pytest.FixtureRequest) -> Iterator[Fenced]:
    resource = f"/refused{next(_numbers)}/7"
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        yield Fenced(server.url, RedisFence(server.client()), resource)
    elif request.param == "etcd":
        cluster: Cluster = request.getfixturevalue("etcd_cluster")
        yield Fenced(cluster.url, EtcdFence(gateway(f"http://{cluster.members[0].endpoint}")), resource)
    else:
        ensemble: Ensemble = request.getfixturevalue("zookeeper_ensemble")
        with started(ensemble.hosts) as client:
            yield Fenced(ensemble.url, ZooKeeperFence(client), resource)


@contextmanager
def started(hosts: str) -> Iterator[Any]:
    """A client of kazoo."""
    from kazoo.client import KazooClient

    client = KazooClient(hosts, timeout=10)
    client.start(20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_what_is_refused_is_kept_and_what_is_accepted_is_not(fenced: Fenced) -> None:
    fenced.fence.claim(fenced.resource, 34)
    assert fenced.record() is None
    before = time.time()
    fenced.refuse(33)
    kept = fenced.record()
    assert kept is not None
    assert (kept.count, [(each.token, each.mark, each.owner) for each in kept.last]) == (1, [(33, 34, "")])
    assert before - 60 < kept.last[0].time < time.time() + 60


def test_a_write_and_a_read_that_come_too_late_are_kept_with_their_owner(fenced: Fenced) -> None:
    with holdfast.connect("memory://refusals") as locks, locks.lock("a") as lease:
        old = fenced.fence.claim(fenced.resource, lease)
        fenced.fence.claim(fenced.resource, lease.token + 1)
        for attempt in (old.get, lambda: (getattr(old, "put", None) or old.set)(b"late")):
            with pytest.raises(FenceRejected):
                attempt()
        kept = fenced.record()
    assert kept is not None
    assert kept.count == 2
    assert {(each.owner, each.mark) for each in kept.last} == {(lease.owner, lease.token + 1)}


def test_the_count_goes_on_and_the_list_stays_short(fenced: Fenced) -> None:
    fenced.fence.claim(fenced.resource, 100)
    for token in range(1, 13):
        fenced.refuse(token)
    kept = fenced.record()
    assert kept is not None
    assert (kept.count, [each.token for each in kept.last]) == (12, list(range(12, 12 - LAST_COUNT, -1)))


ZOMBIE = """
import os, signal, sys
from holdfast.errors import FenceRejected
engine, place, resource = sys.argv[1:]
if engine == "redis":
    import redis
    from holdfast.fenced.redis import RedisFence
    fence = RedisFence(redis.Redis.from_url(place))
elif engine == "etcd":
    from holdfast.fenced.etcd import EtcdFence, gateway
    fence = EtcdFence(gateway(place))
else:
    from kazoo.client import KazooClient
    from holdfast.fenced.zookeeper import ZooKeeperFence
    client = KazooClient(place)
    client.start(20)
    fence = ZooKeeperFence(client)
try:
    fence.claim(resource, 33)
except FenceRejected:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_refusal_of_a_process_that_is_killed_at_once_is_kept(
    fenced: Fenced, request: pytest.FixtureRequest
) -> None:
    engine = request.node.callspec.params["fenced"]
    places: dict[str, Callable[[], str]] = {
        "redis": lambda: fenced.url,
        "etcd": lambda: f"http://{request.getfixturevalue('etcd_cluster').members[0].endpoint}",
        "zookeeper": lambda: str(request.getfixturevalue("zookeeper_ensemble").hosts),
    }
    fenced.fence.claim(fenced.resource, 34)
    words = [sys.executable, "-c", ZOMBIE, engine, places[engine](), fenced.resource]
    assert subprocess.run(words, timeout=60, check=False).returncode == -signal.SIGKILL
    kept = fenced.record()
    assert kept is not None
    assert [(each.token, each.mark) for each in kept.last] == [(33, 34)]


def test_asyncio(redis_server: RedisServer, etcd_cluster: Cluster) -> None:
    transact = gateway(f"http://{etcd_cluster.members[0].endpoint}")
    resource = f"aio{next(_numbers)}"

    async def main() -> None:
        async with redis.asyncio.Redis(port=redis_server.port) as client:
            for fence in (AsyncRedisFence(client), AsyncEtcdFence(lambda txn: asyncio.to_thread(transact, txn))):
                await fence.claim(resource, 34)
                with pytest.raises(FenceRejected):
                    await fence.claim(resource, 33)

    asyncio.run(main())
    for url in (redis_server.url, etcd_cluster.url):
        [kept] = read_refusals(url, resource)
        assert kept.count == 1


def test_a_condition_of_the_users_own_that_is_not_met_is_no_refusal(etcd_cluster: Cluster) -> None:
    fence, resource = EtcdFence(gateway(f"http://{etcd_cluster.members[0].endpoint}")), f"own{next(_numbers)}"
    old = fence.claim(resource, 33)
    never = {"key": b64(resource.encode()), "target": "VERSION", "result": "GREATER", "version": "9"}
    assert old.run([], [never]) is None
    assert read_refusals(etcd_cluster.url, resource) == []
    fence.claim(resource, 34)
    with pytest.raises(FenceRejected) as refusal:
        old.run([], [never])
    assert refusal.value.mark == 34
    [kept] = read_refusals(etcd_cluster.url, resource)
    assert kept.count == 1


def test_nobody_who_is_let_in_pays_a_request_more(redis_server: RedisServer, etcd_cluster: Cluster) -> None:
    transact, sent = gateway(f"http://{etcd_cluster.members[0].endpoint}"), list[object]()

    def counted(txn: Any) -> Any:
        sent.append(txn)
        return transact(txn)

    resource = f"cost{next(_numbers)}"
    key = EtcdFence(counted).claim(resource, 34)
    key.put("1")
    key.get()
    assert len(sent) == 3
    with pytest.raises(FenceRejected):
        EtcdFence(counted).claim(resource, 33)
    assert len(sent) == 4

    class Counting(redis.Redis):
        def execute_command(self, *words: Any, **options: Any) -> Any:
            sent.append(words)
            return super().execute_command(*words, **options)  # type: ignore[no-untyped-call]

    with Counting(port=redis_server.port) as client:
        warm = RedisFence(client).claim(resource, 33)  # a program that is new to the server is sent more than once
        warm.set("1")
        warm.get()
        sent.clear()
        redis_key = RedisFence(client).claim(resource, 34)
        redis_key.set("1")
        redis_key.get()
        assert len(sent) == 3
        with pytest.raises(FenceRejected):
            RedisFence(client).claim(resource, 33)
        assert len(sent) == 4


def test_who_has_no_right_to_keep_refusals_is_let_in_and_refused_as_ever(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"limited{next(_numbers)}"
    redis_server.raw(*f"ACL SETUSER {name} on nopass ~holdfast/fence/* ~holdfast/receipt/* ~orders +@all".split())
    with redis.Redis(port=redis_server.port, username=name, password="any") as client:
        old = RedisFence(client).claim("orders", 33)
        old.set("1")
        RedisFence(client).claim("orders", 34)
        for attempt in (lambda: old.set("2"), old.get, lambda: RedisFence(client).claim("orders", 33)):
            with pytest.raises(FenceRejected) as refusal:
                attempt()
            assert refusal.value.mark == 34
    assert sum("could not be kept" in message for message in caplog.messages) == 1
    assert read_refusals(redis_server.url, "orders") == []


def test_a_user_of_etcd_without_that_right_is_let_in_and_refused_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    with with_password() as cluster:
        [member] = cluster.members
        root = member.rpc("/v3/auth/authenticate", name="root", password="root")["token"]
        whole = {"key": b64(b"holdfast/"), "range_end": b64(b"holdfast0")}
        fences = {"permType": "READWRITE", "key": b64(b"holdfast/fence/"), "range_end": b64(b"holdfast/fence0")}
        administer(member, root, "role/revoke", role="locks", **whole)
        administer(member, root, "role/grant", name="locks", perm=fences)
        own = {"permType": "READWRITE", "key": b64(b"orders")}
        administer(member, root, "role/grant", name="locks", perm=own)
        token = member.rpc("/v3/auth/authenticate", name=USER, password=PASSWORD)["token"]
        sent: list[object] = []
        transact = gateway(f"http://{member.endpoint}", token=token)

        def counted(txn: Any) -> Any:
            sent.append(txn)
            return transact(txn)

        old = EtcdFence(counted).claim("orders", 33)
        assert len(sent) == 2
        old.put("1")
        assert len(sent) == 3, "it was tried once, and then no more"
        EtcdFence(counted).claim("orders", 34)
        with pytest.raises(FenceRejected):
            old.put("2")
        with pytest.raises(FenceRejected):
            cas.EtcdKey(counted, "orders", cas.INTEGER).update(lambda value: value + 1, lease=33)
        assert sum("could not be kept" in message for message in caplog.messages) == 1


def administer(member: Any, token: str, verb: str, **words: object) -> None:
    import json
    import urllib.request

    request = urllib.request.Request(f"http://{member.endpoint}/v3/auth/{verb}", json.dumps(words).encode())
    request.add_header("Authorization", token)
    with urllib.request.urlopen(request, timeout=30):
        pass


def test_compare_and_swap_and_the_log_keep_theirs_at_the_same_place(redis_server: RedisServer) -> None:
    name = f"kept{next(_numbers)}"
    with redis_server.client() as client:
        RedisFence(client).claim(name, 34)
        with pytest.raises(FenceRejected):
            cas.RedisKey(client, name, cas.INTEGER).update(lambda value: value + 1, default=0, lease=33)
        [kept] = read_refusals(redis_server.url, name)
        assert kept.count == 1
        append(client, name, EventData("Paid", {}), expected=ANY, lease=34)
        with pytest.raises(FenceRejected):
            append(client, name, EventData("Paid", {}), expected=ANY, lease=33)
        counts = [each.count for each in read_refusals(redis_server.url) if each.resource.endswith(f"streams/{name}")]
        assert counts == [1]


def test_in_a_cluster_every_primary_is_looked_at() -> None:
    with with_cluster() as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        with redis.RedisCluster(host="127.0.0.1", port=nodes[0].port) as client:
            names = ("a", "b}c", "{d}e", "f", "g/h")
            for name in names:
                RedisFence(client).claim(name, 34)
                with pytest.raises(FenceRejected):
                    RedisFence(client).claim(name, 33)
        assert [each.resource for each in read_refusals(url)] == sorted(names)
