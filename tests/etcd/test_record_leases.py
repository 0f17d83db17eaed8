"""The leases of records: few, as long as they have to be, and gone with them."""

from __future__ import annotations

import time

import pytest

from tests.etcd.cluster import Cluster, await_true, b64, running
from tests.support.record_faces import record_client


def lease_of(cluster: Cluster, key: str) -> str:
    [found] = cluster.members[0].rpc("/v3/kv/range", key=b64(key.encode()))["kvs"]
    lease: str = found["lease"]
    return lease


def test_many_records_of_many_processes_share_few_leases_and_are_forgotten() -> None:
    with running(1) as cluster:
        before = len(cluster.leases())
        for number in range(4):
            with record_client(cluster.url) as records:
                for each in range(100):
                    assert records.swap(f"long/{number}/{each}", 0, b"x", keep=86400).done
        assert len(cluster.leases()) - before <= 2, "each process has leases of its own"
        with record_client(cluster.url) as records:
            for number in range(1000):
                assert records.swap(f"short/{number}", 0, b"x", ttl=1 if number % 10 == 0 else 0, keep=1).done
            await_true(lambda: not cluster.keys("holdfast/record/short"), "them to be forgotten")
        await_true(lambda: not cluster.keys("holdfast/alive/"), "nobody to stand behind them")
        await_true(lambda: len(cluster.leases()) - before <= 2, "their leases to end")
        assert len(cluster.keys("holdfast/record/long/")) == 400


def test_what_is_done_over_and_over_makes_no_leases() -> None:
    """Neither for who finds a result, nor for who begins and completes one attempt after the other."""
    with running(1) as cluster, record_client(cluster.url) as records:
        before = len(cluster.leases())
        for number in range(50):
            begun = records.swap(f"a{number}", 0, b"begun", ttl=60).record
            assert begun is not None
            assert records.touch((f"a{number}", "me"), ttl=60) == [True]
            done = records.swap(f"a{number}", begun.version, b"done").record
            assert done is not None
            for _ in range(3):
                assert records.swap(f"a{number}", 0, b"begun", "another", ttl=60).record == done
        assert len(cluster.leases()) - before <= 3


def test_a_spare_lease_that_may_be_ending_is_left(state_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has confirmed that it was kept alive, or it is gone: the record gets another one."""
    with record_client(state_cluster.url, namespace="record-spare") as records:
        first = records.swap("a", 0, b"x", ttl=60).record
        assert first is not None
        spare = lease_of(state_cluster, "record-spare/alive/a")
        assert records.swap("a", first.version, None).done
        monkeypatch.setattr("holdfast.backends.etcd.records.proven", lambda kept, proof: False)
        assert records.swap("b", 0, b"x", ttl=60).done
        monkeypatch.undo()
        assert lease_of(state_cluster, "record-spare/alive/b") != spare
        assert records.touch(("b", "me"), ttl=60) == [True]
        second = records.swap("c", 0, b"x", ttl=60).record
        assert second is not None
        spare = lease_of(state_cluster, "record-spare/alive/c")
        assert records.swap("c", second.version, None).done
        state_cluster.members[0].rpc("/v3/lease/revoke", ID=spare)
        third = records.swap("d", 0, b"x", ttl=60).record
        assert records.read("d") == third
        assert lease_of(state_cluster, "record-spare/alive/d") != spare


def test_what_is_touched_lives_and_is_kept(state_cluster: Cluster) -> None:
    """Longer than its ttl, and than it would be kept: 1 s, and the 5 s of its lease."""
    with record_client(state_cluster.url, namespace="record-touches") as records:
        first = records.swap("a", 0, b"x", ttl=4, keep=1).record
        assert first is not None
        end = time.monotonic() + 8
        while time.monotonic() < end:
            assert records.touch(("a", "me"), ttl=4) == [True]
            found = records.read("a")
            assert found is not None
            assert found.remaining == 4
            assert found.version == first.version
            time.sleep(0.2)
        await_true(lambda: records.read("a") is None, "it to be forgotten, too")
        assert records.touch(("a", "me"), ttl=1) == [False]


def test_a_lease_that_is_gone_is_made_again(state_cluster: Cluster) -> None:
    with record_client(state_cluster.url, namespace="record-lease") as records:
        first = records.swap("a", 0, b"x", keep=7200).record
        assert first is not None
        state_cluster.members[0].rpc("/v3/lease/revoke", ID=lease_of(state_cluster, "record-lease/record/a"))
        assert records.read("a") is None
        second = records.swap("a", 0, b"y", ttl=60, keep=7200).record
        assert second is not None
        assert records.read("a") == second
