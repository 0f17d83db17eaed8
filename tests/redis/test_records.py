"""Records on real servers: what `holdfast.record` says, in a crowd, on every kind of server."""

from __future__ import annotations

import multiprocessing
import threading
from binascii import crc32
from collections.abc import Callable
from typing import Any

import pytest
import redis

from holdfast.backends.redis.record_codec import BUCKETS_COUNT
from holdfast.backends.redis.slots import slot_of
from holdfast.errors import BackendUnavailable
from tests.redis.faces import both
from tests.support.record_checks import CHECKS, RecordClient
from tests.support.record_faces import count_up, record_client
from tests.support.redis_server import RedisServer, other, running
from tests.support.redis_topologies import await_true, with_cluster, with_tls

Check = Callable[[RecordClient], None]
every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@both
@every_check
def test_records(server: RedisServer, check: Check, face: str) -> None:
    with record_client(server.url, face) as records:
        check(records)


@every_check
def test_with_a_client_of_the_user_and_the_old_protocol(server: RedisServer, check: Check) -> None:
    with record_client(redis.Redis(port=server.port, protocol=2)) as records:
        check(records)


@pytest.mark.parametrize("program", ["redis-6.2", "valkey"])
def test_other_servers(program: str) -> None:
    with running(other(program)) as server, record_client(server.url) as records:
        for check in CHECKS:
            check(records)
        assert records.touch(("once:a:1", "another")) == [True]


def test_tls() -> None:
    with with_tls() as (server, certificate):
        with record_client(f"rediss://localhost:{server.port}?ssl_ca_certs={certificate}") as records:
            for check in CHECKS:
                check(records)


def test_a_cluster() -> None:
    with with_cluster() as nodes:
        for face in ("sync", "asyncio"):
            with record_client(f"redis+cluster://127.0.0.1:{nodes[0].port}", face) as records:
                for check in CHECKS:
                    check(records)
            for node in nodes:
                node.raw("FLUSHALL")
                node.raw("SCRIPT", "FLUSH")
        with record_client(f"redis+cluster://127.0.0.1:{nodes[0].port}", "sync") as records:
            keys = [f"once:many:{number:03}" for number in range(200)]
            for key in keys:
                assert records.swap(key, 0, key.encode(), ttl=1).done
            assert min(int(node.client().dbsize()) for node in nodes) > 20, "they are not spread"
            assert records.touch(*((key, "me") for key in keys), ("once:many:x", "me")) == [True] * 200 + [False]
            pages: list[str] = []
            while page := records.keys("once:many:", pages[-1] if pages else "", limit=7):
                pages += page
            assert pages == keys
            bucket = crc32(b"many:5000") % BUCKETS_COUNT
            client = redis.RedisCluster(host="127.0.0.1", port=nodes[0].port)
            client.zadd(f"holdfast/records{{{bucket}}}", {f"many:{number:04}": 0 for number in range(1200)})
            client.close()
            assert records.swap("many:5000", 0, b"x").done
            assert crc32(b"many:9000") % BUCKETS_COUNT != bucket
            assert records.swap("many:9000", 0, b"x").done
            assert records.keys("many:", limit=5) == ["many:5000", "many:9000"], "one lies behind many that are gone"
            scans = [node.client().info("commandstats").get("cmdstat_scan") for node in nodes]
            assert scans == [None] * 3


def test_a_node_that_hangs_spoils_only_its_own_touches() -> None:
    with with_cluster() as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        with record_client(url, request_timeout=1.0) as records:
            keys = [f"once:many:{number:03}" for number in range(60)]
            for key in keys:
                assert records.swap(key, 0, b"x", ttl=60).done
            nodes[2].pause()
            try:
                said = records.touch(*((key, "me") for key in keys))
                with pytest.raises(BackendUnavailable):
                    records.keys("once:many:")
            finally:
                nodes[2].resume()
            assert set(said) == {True, None}
            assert said.count(True) > 20


def test_buckets_are_spread_over_a_cluster() -> None:
    shares = [slot_of(b"{%d}" % number) * 3 // 16384 for number in range(BUCKETS_COUNT)]
    assert min(shares.count(node) for node in range(3)) > BUCKETS_COUNT // 5


@pytest.mark.parametrize("face", ["sync", "asyncio"])
def test_threads_lose_no_update(server: RedisServer, face: str) -> None:
    versions: list[int] = []
    with record_client(server.url, face) as records:
        threads = [threading.Thread(target=count_up, args=(records, "n", 40, versions)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        found = records.read("n")
        assert found is not None
        assert int(found.data) == len(versions) == len(set(versions)) == 320
        assert found.version == max(versions)


def _count_in_a_process(url: str, told: Any) -> None:
    versions: list[int] = []
    with record_client(url) as records:
        conflicts = count_up(records, "n", 100, versions)
    told.put((versions, conflicts))


def test_processes_lose_no_update(server: RedisServer) -> None:
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    workers = [context.Process(target=_count_in_a_process, args=(server.url, told)) for _ in range(4)]
    for worker in workers:
        worker.start()
    said = [told.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(30)
    versions = [version for some, _ in said for version in some]
    with record_client(server.url) as records:
        found = records.read("n")
    assert found is not None
    assert int(found.data) == len(versions) == len(set(versions)) == 400


def entries(server: RedisServer) -> int:
    found: int = server.client().zcard("holdfast/records")
    return found


def test_nothing_is_left_of_what_was_forgotten(server: RedisServer) -> None:
    before = server.client().dbsize()
    with record_client(server.url) as records:
        flow = records.backend.swap_record
        for number in range(10_000):
            records.run(flow(f"once:many:{number}", 0, b"result", "me", 0.0, 1.0))
        await_true(lambda: server.client().dbsize() <= before + 2, "all of them, and the index, to be gone")
        assert sorted(server.client().keys()) == [b"holdfast/cluster", b"holdfast/records/state"]


def test_the_index_of_a_busy_server_does_not_grow(server: RedisServer) -> None:
    """One record stays, so the index does; those that are forgotten are dropped from it by those that come."""
    with record_client(server.url) as records:
        assert records.swap("stays", 0, b"x").done
        for number in range(1000):
            records.swap(f"short:{number}", 0, b"x", keep=0.001)
        assert entries(server) < 100
        for number in range(300):
            records.swap(f"short:{number}", 0, b"x", keep=0.3)
        await_true(lambda: records.keys("") == ["stays"], "them to be forgotten")
        assert entries(server) == 1


def test_a_list_looks_through_no_keys_and_beyond_what_is_gone(server: RedisServer) -> None:
    server.client().mset({f"somebody-else/{number}": 1 for number in range(3000)})
    server.client().zadd("holdfast/records", {f"gone:{number:05}": 0 for number in range(2500)})
    with record_client(server.url) as records:
        server.client().config_resetstat()
        assert records.swap("gone:99999", 0, b"x").done
        assert records.keys("gone:", limit=5) == ["gone:99999"]
        assert entries(server) == 1
        assert "cmdstat_scan" not in server.client().info("commandstats")
