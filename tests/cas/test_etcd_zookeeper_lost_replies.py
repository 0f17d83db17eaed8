"""A reply of etcd or ZooKeeper that is lost: the write is settled, or told as `OutcomeUnknown`; never done twice."""

from __future__ import annotations

import itertools
import urllib.error
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import cas
from holdfast.fenced.etcd import gateway
from tests.cas.faulty import faulty
from tests.etcd.cluster import Cluster, b64
from tests.zookeeper.ensemble import Ensemble

_numbers = itertools.count()


class Etcd:
    """The same on etcd: faults meet each transaction that puts the key."""

    lost: Exception = TimeoutError("lost")

    def __init__(self, cluster: Cluster, *faults: str, between: Callable[[], object] = str) -> None:
        self.writes, left = 0, iter(faults)
        transact = gateway(f"http://{cluster.members[0].endpoint}", timeout=30)

        def strike(txn: dict[str, Any]) -> dict[str, Any]:
            if not any(
                operation.get("request_put", {}).get("key") == b64(self.key.encode()) for operation in txn["success"]
            ):
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
    transact = gateway(f"http://{etcd_cluster.members[0].endpoint}", timeout=30)
    big = cas.EtcdKey(transact, f"lost/{next(_numbers)}", cas.BYTES)
    with pytest.raises(urllib.error.HTTPError):
        big.create(b"x" * 3_000_000)
    with pytest.raises(cas.Missing):
        big.read()
