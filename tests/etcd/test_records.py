"""Records on a real cluster: what `holdfast.record` says, in a crowd, through crashes, and without growth."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from holdfast._core.flow import Call
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from tests.etcd.cluster import Cluster, await_true, running
from tests.etcd.secured import PASSWORD, USER, with_password, with_tls
from tests.redis.proxy import proxied
from tests.support.record_checks import CHECKS, RecordClient
from tests.support.record_faces import count_up, record_client

every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@pytest.mark.parametrize("face", ["sync", "asyncio"])
@every_check
def test_records(state_cluster: Cluster, check: Callable[[RecordClient], None], face: str) -> None:
    with record_client(state_cluster.url, face, namespace=f"{check.__name__}-{face}") as records:
        check(records)


def test_threads_lose_no_update(state_cluster: Cluster) -> None:
    versions: list[int] = []
    with record_client(state_cluster.url, namespace="record-threads") as records:
        threads = [threading.Thread(target=count_up, args=(records, "n", 15, versions)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        found = records.read("n")
    assert found is not None
    assert int(found.data) == len(versions) == len(set(versions)) == 90
    assert found.version == max(versions)


def _count_in_a_process(url: str, told: Any) -> None:
    versions: list[int] = []
    with record_client(url, namespace="record-processes") as records:
        count_up(records, "n", 25, versions)
    told.put(versions)


def test_processes_lose_no_update(state_cluster: Cluster) -> None:
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    workers = [context.Process(target=_count_in_a_process, args=(state_cluster.url, told)) for _ in range(3)]
    for worker in workers:
        worker.start()
    versions = [version for _ in workers for version in told.get(timeout=120)]
    for worker in workers:
        worker.join(30)
    with record_client(state_cluster.url, namespace="record-processes") as records:
        found = records.read("n")
    assert found is not None
    assert int(found.data) == len(versions) == len(set(versions)) == 75


def test_a_touch_brings_a_dead_one_back_but_not_a_successors(state_cluster: Cluster) -> None:
    with record_client(state_cluster.url, namespace="record-dead") as records:
        first = records.swap("a", 0, b"x", ttl=1).record
        assert first is not None

        def dead() -> bool:
            found = records.read("a")
            return found is not None and found.remaining == 0

        await_true(dead, "it to die")
        assert records.touch(("a", "me"), ttl=30) == [True]
        assert not dead()
        with record_client(state_cluster.url, namespace="record-dead") as others:
            assert others.touch(("a", "me"), ttl=30) == [True], "on a lease that it did not know"
            second = others.swap("a", first.version, b"y", "another", ttl=60).record
        assert records.touch(("a", "me"), ttl=30) == [False]
        assert records.read("a") == second


def test_a_successor_that_comes_as_a_dead_one_is_brought_back(state_cluster: Cluster) -> None:
    """The owner was read, and is another's when the key beside the record is put: it is not put."""
    with record_client(state_cluster.url, namespace="record-race") as records:
        first = records.swap("a", 0, b"x").record
        assert first is not None
        run = records.run
        successors: list[Any] = []

        def come(calls: int) -> None:
            if calls == 3:  # a look at what is alive, a look at the record, and now the write
                records.run = run
                successors.append(records.swap("a", first.version, b"y", "another").record)

        intercept(records, come)
        assert records.touch(("a", "me")) == [False]
        assert records.read("a") == successors[0]


def test_many_are_touched_and_listed_in_few_requests(state_cluster: Cluster) -> None:
    with record_client(state_cluster.url, namespace="record-many") as records:
        keys = [f"many:{number:03}" for number in range(120)]
        for number, key in enumerate(keys):
            assert records.swap(key, 0, b"x", ttl=60 if number % 2 else 0).done
        asked: list[int] = []
        intercept(records, asked.append)
        assert records.touch(*((key, "me") for key in keys[1::2])) == [True] * 60
        assert len(asked) <= 2 + 1, "two batches, and the lease on which they are kept"
        found = records.run(records.backend.list_records("many:", "", 1000))
        assert len(asked) <= 3 + 2 * 3
        assert [record.key for record in found] == keys
        assert [record.remaining for record in found] == [0.0, 60.0] * 60


def intercept(records: RecordClient, before: Callable[[int], None]) -> None:
    """Call this before each request of a flow, with its number."""
    run = records.run

    def intercepted(flow: Any) -> Any:
        def watched() -> Any:
            said, calls = None, 0
            try:
                while True:
                    op = flow.send(said)
                    if isinstance(op, Call):
                        calls += 1
                        before(calls)
                    said = yield op
            except StopIteration as end:
                return end.value

        return run(watched())

    records.run = intercepted


@pytest.mark.parametrize("face", ["sync", "asyncio"])
def test_a_lost_reply(state_cluster: Cluster, face: str) -> None:
    """It is said that nobody knows, it was done once, and the record tells."""
    with proxied(state_cluster.members[0].port) as proxy:
        url = f"etcd://127.0.0.1:{proxy.port}"
        with record_client(url, face, namespace=f"record-lost-{face}", request_timeout=1.0) as records:
            expected = 0
            for number in range(4):  # some connections end, some are silent
                assert records.swap("warm", 0, b"x", keep=60).done == (number == 0)  # the lease is there
                proxy.loss = 1.0
                with pytest.raises(OutcomeUnknown):
                    records.swap("a", expected, b"%d" % number, keep=60)
                proxy.loss = 0.0
                proxy.cut()
                found = eventually_read(records, "a")
                assert found is not None
                assert found.data == b"%d" % number
                refused = records.swap("a", expected, b"again", keep=60)
                assert not refused.done
                assert refused.record == found
                expected = found.version


def eventually_read(records: RecordClient, key: str) -> Any:
    def look() -> Any:
        try:
            return [records.read(key)]
        except BackendUnavailable:
            return None

    return await_true(look, "an answer")[0]


def test_members_that_crash() -> None:
    """One goes, then all; what was written is there, and its version."""
    with running(3, fsync=True) as cluster, record_client(cluster.url, request_timeout=2.0) as records:
        first = records.swap("a", 0, b"one", ttl=60).record
        assert first is not None
        cluster.leader().stop()
        assert eventually_read(records, "a") == first
        for member in cluster.members:
            member.stop()
        cluster.start()
        assert eventually_read(records, "a") == first
        assert records.touch(("a", "me"), ttl=60) == [True]
        second = records.swap("a", first.version, None)
        assert second.done
        again = records.swap("a", 0, b"two").record
        assert again is not None
        assert again.version > first.version


def test_the_largest_record(state_cluster: Cluster) -> None:
    data = bytes(range(256)) * 4096
    with record_client(state_cluster.url, namespace="record-large") as records:
        assert records.swap("a", 0, data).done
        found = records.read("a")
        assert found is not None
        assert found.data == data


def test_a_user_with_a_role() -> None:
    with with_password() as cluster:
        url = f"etcd://{USER}:{quote(PASSWORD, safe='')}@{cluster.members[0].endpoint}"
        with record_client(url) as records:
            for check in CHECKS:
                check(records)


def test_tls() -> None:
    with with_tls() as (cluster, _), record_client(cluster.url) as records:
        for check in CHECKS[:3]:
            check(records)
