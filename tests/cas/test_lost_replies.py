"""A reply that is lost: the write is settled, or told as `OutcomeUnknown`; it is never done twice.

Faults are put between a register and the real server: a request is carried out and its reply lost, lost before it is
carried out, or sent again by the client itself, as redis-py does.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from holdfast import cas
from holdfast.cas.redis import requests
from holdfast.cas.redis.requests import RedisScript
from holdfast.fenced.etcd import gateway
from tests.etcd.cluster import Cluster
from tests.redis.proxy import proxied
from tests.support.redis_server import RedisServer
from tests.zookeeper.ensemble import Ensemble

_numbers = itertools.count()
Faults = Iterator[str]


def faulty(send: Callable[[], Any], fault: str, lost: Exception, between: Callable[[], object] = str) -> Any:
    """One request, with a fault: "after" and "before" it is carried out, or "twice", with something in between."""
    if fault == "before":
        raise lost
    reply = send()
    if fault == "after":
        between()
        raise lost
    if fault == "twice":
        between()
        reply = send()
    return reply


class Redis:
    """A register on a real server whose writes meet faults, one after the other."""

    lost: Exception = redis.ConnectionError("lost")

    def __init__(self, server: RedisServer, *faults: str, between: Callable[[], object] = str) -> None:
        server.raw("FLUSHALL")
        self.client = server.client()
        self.register = cas.RedisKey(self.client, "stock/7", cas.INTEGER)
        perform, self.faults, self.writes = self.register._perform, iter(faults), 0

        def strike(request: Any) -> object:
            if not isinstance(request, RedisScript) or "receipt" not in request.text:
                return perform(request)
            self.writes += 1
            return faulty(lambda: perform(request), next(self.faults, ""), self.lost, between)

        self.register.create(5)
        self.register._perform = strike


@pytest.mark.parametrize("faults", [("after",), ("before",), ("twice",), ("before", "after"), ("after", "after")])
@pytest.mark.parametrize("lease", [None, 33])
def test_redis_settles_it(redis_server: RedisServer, faults: tuple[str, ...], lease: int | None) -> None:
    at = Redis(redis_server, *faults)
    assert at.register.update(lambda old: old + 1, lease=lease) == 6
    assert at.client.get("stock/7") == b"6"
    assert at.register.stats == cas.Stats(updates=2, tries=2, conflicts=0)


@pytest.mark.parametrize("fault", ["after", "twice"])
def test_redis_settles_it_also_when_others_have_written_since(redis_server: RedisServer, fault: str) -> None:
    """Compared with the value alone, the copy would meet 106 and count once more: 107."""
    at = Redis(redis_server, fault, between=lambda: redis_server.client().incrby("stock/7", 100))
    assert at.register.update(lambda old: old + 1) == 6
    assert at.client.get("stock/7") == b"106"


@pytest.mark.parametrize("fault", ["after", "twice"])
def test_redis_settles_it_also_when_a_newer_holder_has_claimed_since(redis_server: RedisServer, fault: str) -> None:
    def newer() -> None:
        cas.RedisKey(redis_server.client(), "stock/7", cas.INTEGER).update(lambda old: old + 100, lease=34)

    at = Redis(redis_server, fault, between=newer)
    assert at.register.update(lambda old: old + 1, lease=33) == 6
    assert at.client.get("stock/7") == b"106"
    with pytest.raises(cas.FenceRejected):
        at.register.update(lambda old: old + 1, lease=33)


@pytest.mark.parametrize("fault", ["after", "before"])
def test_redis_tells_when_nothing_gets_through(redis_server: RedisServer, fault: str) -> None:
    at = Redis(redis_server, *[fault] * 9)
    with pytest.raises(cas.OutcomeUnknown, match="at most once"):
        at.register.update(lambda old: old + 1)
    assert at.writes == requests.MAX_SENDS_COUNT
    assert at.client.get("stock/7") == (b"6" if fault == "after" else b"5")
    assert at.register.stats.updates == 1


def test_a_conflict_is_not_believed_once_the_receipt_may_have_expired(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgets() -> None:
        for key in redis_server.client().keys("holdfast/cas/*"):
            redis_server.client().delete(key)

    monkeypatch.setattr(requests, "TRUSTED_S", -1.0)
    at = Redis(redis_server, "after", between=forgets)
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1)
    assert at.client.get("stock/7") == b"6"


def test_a_refusal_is_not_believed_once_the_receipt_may_have_expired(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer() -> None:
        client = redis_server.client()
        cas.RedisKey(client, "stock/7", cas.INTEGER).update(lambda old: old + 100, lease=34)
        client.delete(*client.keys("holdfast/cas/*"))

    at = Redis(redis_server, "twice", between=newer)
    monkeypatch.setattr(requests, "TRUSTED_S", -1.0)
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1, lease=33)
    assert at.client.get("stock/7") == b"106"


@pytest.mark.parametrize("fault", ["after", "before"])
@pytest.mark.parametrize("kind", ["ReadOnlyError", "ClusterDownError", "MasterDownError", "TryAgainError"])
def test_a_fail_over_is_settled_by_the_server_that_takes_over(redis_server: RedisServer, fault: str, kind: str) -> None:
    at = Redis(redis_server, fault, fault)
    at.lost = getattr(redis.exceptions, kind)("of a server that is none any more")
    assert at.register.update(lambda old: old + 1) == 6
    assert at.client.get("stock/7") == b"6"


def test_a_refusal_of_the_server_is_not_tried_again(redis_server: RedisServer) -> None:
    at = Redis(redis_server)

    def change(old: int) -> int:
        at.client.delete("stock/7")
        at.client.lpush("stock/7", 1)
        return old

    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        at.register.update(change)
    assert at.writes == 1


def test_redis_behind_a_proxy_that_loses_replies(redis_server: RedisServer) -> None:
    """With redis-py's own retries, as people have them: every update that was acknowledged is there once."""
    redis_server.raw("FLUSHALL")
    cas.RedisKey(redis_server.client(), "stock/7", cas.INTEGER).create(0)
    done, open_ends = itertools.count(), itertools.count()
    with proxied(redis_server.port) as proxy:

        def work() -> None:
            with redis.Redis(port=proxy.port, socket_timeout=1) as client:
                retry = cas.Retry(attempts=200, timeout=60)
                counter = cas.RedisKey(client, "stock/7", cas.INTEGER, retry=retry)
                for _ in range(25):
                    try:
                        counter.update(lambda old: old + 1)
                        next(done)
                    except cas.OutcomeUnknown:
                        next(open_ends)
                    except redis.RedisError:
                        pass  # of a read: nothing was written

        proxy.loss = 0.1
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert proxy.lost > 5
    acknowledged, unknown = next(done), next(open_ends)
    assert acknowledged > 20
    value = int(redis_server.client().get("stock/7"))
    assert acknowledged <= value <= acknowledged + unknown


class Etcd:
    """The same on etcd: faults meet each transaction that puts the key."""

    lost: Exception = TimeoutError("lost")

    def __init__(self, cluster: Cluster, *faults: str, between: Callable[[], object] = str) -> None:
        self.writes, left = 0, iter(faults)
        transact = gateway(f"http://{cluster.members[0].endpoint}", timeout=30)

        def strike(txn: dict[str, Any]) -> dict[str, Any]:
            if not any("request_put" in operation for operation in txn["success"]):
                return transact(txn)
            self.writes += 1
            reply: dict[str, Any] = faulty(lambda: transact(txn), next(left, ""), self.lost, between)
            return reply

        self.key = f"lost/{next(_numbers)}"
        self.other = cas.EtcdKey(transact, self.key, cas.INTEGER)
        self.other.create(5)
        self.register = cas.EtcdKey(strike, self.key, cas.INTEGER)


class ZooKeeper:
    """The same on ZooKeeper: faults meet `set` and `commit` of the client."""

    def __init__(self, clients: Any, *faults: str, between: Callable[[], object] = str) -> None:
        from kazoo.exceptions import ConnectionLoss

        self.path = f"/cas/lost{next(_numbers)}"
        self.other = cas.ZNode(clients, self.path, cas.INTEGER)
        self.other.create(5)
        at, self.writes, left = self, 0, iter(faults)

        def strike(send: Callable[[], Any]) -> Any:
            at.writes += 1
            return faulty(send, next(left, ""), ConnectionLoss(), between)

        class Client:
            def __getattr__(self, name: str) -> Any:
                return getattr(clients, name)

            def set(self, *words: Any) -> Any:
                return strike(lambda: clients.set(*words))

            def transaction(self) -> Any:
                found = clients.transaction()
                commit = found.commit
                found.commit = lambda: strike(commit)
                return found

        self.register = cas.ZNode(Client(), self.path, cas.INTEGER)


@pytest.fixture(params=["etcd", "zookeeper"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    if request.param == "etcd":
        cluster: Cluster = request.getfixturevalue("etcd_cluster")
        yield lambda *faults, **more: Etcd(cluster, *faults, **more)
        return
    from kazoo.client import KazooClient

    ensemble: Ensemble = request.getfixturevalue("zookeeper_ensemble")
    client = KazooClient(ensemble.hosts, timeout=30)
    client.start(30)
    yield lambda *faults, **more: ZooKeeper(client, *faults, **more)
    client.stop()
    client.close()


@pytest.mark.parametrize("lease", [None, 33])
def test_a_write_that_was_lost_on_its_way_is_settled(make: Callable[..., Any], lease: int | None) -> None:
    at = make("before")
    assert at.register.update(lambda old: old + 1, lease=lease) == 6
    assert at.writes == 2
    assert at.other.read().value == 6


@pytest.mark.parametrize("lease", [None, 33])
def test_a_write_whose_reply_was_lost_is_told_and_not_done_again(make: Callable[..., Any], lease: int | None) -> None:
    at = make("after")
    with pytest.raises(cas.OutcomeUnknown, match="at most once"):
        at.register.update(lambda old: old + 1, lease=lease)
    assert at.other.read().value == 6
    assert at.register.stats == cas.Stats(updates=0, tries=1, conflicts=0)


def test_somebody_elses_write_after_a_lost_one_leaves_it_open(make: Callable[..., Any]) -> None:
    """Whether the other one came before or after ours cannot be told."""
    at: Any = make("after", between=lambda: at.other.update(lambda old: old + 100))
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1)
    assert at.other.read().value == 106


def test_nothing_gets_through(make: Callable[..., Any]) -> None:
    at = make("before", "before")
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1)
    assert at.writes == 2
    assert at.other.read().value == 5


def test_a_claim_after_a_lost_write_leaves_it_open(make: Callable[..., Any]) -> None:
    at: Any = make("after", between=lambda: at.other.update(lambda old: old + 100, lease=34))
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1, lease=33)
    assert at.other.read().value == 106


def test_what_etcd_refuses_is_not_sent_again(etcd_cluster: Cluster) -> None:
    import urllib.error

    transact = gateway(f"http://{etcd_cluster.members[0].endpoint}", timeout=30)
    big = cas.EtcdKey(transact, f"lost/{next(_numbers)}", cas.BYTES)
    with pytest.raises(urllib.error.HTTPError):
        big.create(b"x" * 3_000_000)
    with pytest.raises(cas.Missing):
        big.read()
