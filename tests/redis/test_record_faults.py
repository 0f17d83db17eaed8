"""Records where something is wrong: replies that are lost, servers that restart or are full, users without rights."""

from __future__ import annotations

import time
from binascii import crc32

import pytest

import holdfast
from holdfast.backends.redis.error_mapping import NEEDED
from holdfast.backends.redis.record_codec import BUCKETS_COUNT
from holdfast.backends.redis.slots import slot_of
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from tests.redis.faces import both
from tests.redis.proxy import proxied
from tests.support.record_checks import CHECKS, RecordClient
from tests.support.record_faces import record_client
from tests.support.redis_server import RedisServer, running
from tests.support.redis_topologies import await_true, with_cluster, with_replicas, with_sentinel


def test_a_restart_forgets_nothing_that_was_written_to_disk() -> None:
    with running(appendonly="yes", appendfsync="always") as server, record_client(server.url) as records:
        first = records.swap("a", 0, b"one", ttl=60).record
        gone = records.swap("b", 0, b"two").record
        assert first is not None
        assert gone is not None
        assert records.swap("b", gone.version, None).done
        server.stop()
        server.start()
        found = records.read("a")
        assert found is not None
        assert (found.version, found.data, found.owner) == (first.version, b"one", "me")
        assert found.remaining > 0
        assert records.touch(("a", "me")) == [True]
        again = records.swap("b", 0, b"two").record
        assert again is not None
        assert again.version > gone.version
        assert records.keys("") == ["a", "b"]


def test_a_failover_keeps_records() -> None:
    with with_sentinel() as (url, primary, _), record_client(url, request_timeout=2.0) as records:
        first = records.swap("a", 0, b"one").record
        assert first is not None
        assert primary.client().wait(1, 5000) == 1
        primary.stop()

        def found() -> object:
            try:
                return records.read("a")
            except BackendUnavailable:
                return None

        await_true(lambda: found() == first, "the record at the new primary")
        assert records.swap("a", first.version, b"two").done


def test_a_clock_that_goes_back(server: RedisServer) -> None:
    """The mark of the last version outlives its record."""
    with record_client(server.url) as records:
        first = records.swap("a", 0, b"one").record
        assert first is not None
        later = first.version + 10**12
        server.raw("HSET", "holdfast/records/state", "mark", str(later))  # as if the clock had been there
        second = records.swap("a", first.version, b"two", keep=0.02).record
        assert second is not None
        assert second.version == later + 1
        await_true(lambda: records.read("a") is None, "it to be forgotten")
        third = records.swap("a", 0, b"three").record
        assert third is not None
        assert third.version == later + 2
        assert records.swap("a", third.version, None).done
        fourth = records.swap("a", 0, b"four").record
        assert fourth is not None
        assert fourth.version == later + 3


@both
def test_a_lost_reply(server: RedisServer, face: str) -> None:
    """It is said that nobody knows, it was done once, and the record tells."""
    with proxied(server.port) as proxy, record_client(proxy.url, face, request_timeout=0.5) as records:
        expected = 0
        for number in range(4):  # some connections end, some are silent
            assert not records.swap("warm", 17, b"x").done  # the server knows the program
            proxy.loss = 1.0
            with pytest.raises(OutcomeUnknown):
                records.swap("a", expected, b"%d" % number)
            proxy.loss = 0.0
            proxy.cut()
            found = records.read("a")
            assert found is not None
            assert found.data == b"%d" % number
            refused = records.swap("a", expected, b"again")
            assert not refused.done
            assert refused.record == found
            expected = found.version
        assert proxy.lost >= 4


def test_an_idle_connection_that_has_ended_is_no_lost_reply(server: RedisServer) -> None:
    with record_client(server.url) as records:
        assert records.read("a") is None
        server.raw("CLIENT", "KILL", "TYPE", "normal")
        assert records.swap("a", 0, b"x").done


def test_a_full_server(server: RedisServer) -> None:
    """Nothing new, nothing half done; what is there lives on, and can be deleted."""
    with record_client(server.url) as records:
        first = records.swap("a", 0, b"one", ttl=1).record
        second = records.swap("b", 0, b"one").record
        assert first is not None
        assert second is not None
        keys = sorted(server.client().keys())
        server.raw("CONFIG", "SET", "maxmemory", "1mb")
        try:
            for key, expected in (("a", first.version), ("c", 0)):
                with pytest.raises(BackendUnavailable, match="maxmemory"):
                    records.swap(key, expected, b"two")
            assert records.touch(("a", "me")) == [True]
            assert records.swap("b", second.version, None).done
        finally:
            server.raw("CONFIG", "SET", "maxmemory", "0")
        keys.remove(b"holdfast/record/b")
        assert sorted(server.client().keys()) == keys
        found = records.read("a")
        assert found is not None
        assert (found.version, found.data) == (first.version, b"one")
        assert records.keys("") == ["a"]


def test_a_user_that_may_do_only_what_is_needed(server: RedisServer) -> None:
    def rules(commands: str) -> list[str]:
        return ["on", ">s3cret", "~holdfast/*", "&holdfast/*", *(f"+{each}" for each in commands.lower().split(" "))]

    server.client().execute_command("ACL", "SETUSER", "locks", "reset", *rules(f"{NEEDED} INFO SELECT"))
    try:
        with record_client(f"redis://locks:s3cret@127.0.0.1:{server.port}") as records:
            for check in CHECKS:
                check(records)
            for missing in ("zadd", "zrange", "pexpire", "pttl", "hset", "hmget", "zrem", "del"):
                server.client().delete("holdfast/records")
                old = records.swap("old", 0, b"x").record
                assert old is not None
                server.client().hset("holdfast/records/state", "turn", "3")  # the next one looks through the index
                server.client().execute_command("ACL", "SETUSER", "locks", f"-{missing}")
                with pytest.raises(holdfast.Misconfigured, match="ZREM"):
                    _ = (
                        records.swap("old", old.version, None)
                        if missing in ("zrem", "del")
                        else records.swap("new", 0, b"x")
                    )
                server.client().execute_command("ACL", "SETUSER", "locks", f"+{missing}")
                assert records.read("new") is None
                assert records.read("old") == old
                assert records.swap("old", old.version, None).done
    finally:
        server.client().execute_command("ACL", "DELUSER", "locks")


def test_a_key_of_another_kind_concerns_only_itself(server: RedisServer) -> None:
    with record_client(server.url) as records:
        for key in ("a", "b", "c"):
            assert records.swap(key, 0, b"x").done
        server.raw("SET", "holdfast/record/b", "no record")
        assert records.keys("") == ["a", "c"]
        assert records.touch(("a", "me"), ("b", "me"), ("c", "me")) == [True, False, True]
        assert records.read("b") is None
        with pytest.raises(BackendUnavailable, match="WRONGTYPE"):
            records.swap("b", 0, b"x")
        assert server.client().get("holdfast/record/b") == b"no record"


def test_replicas_confirm_what_is_written_and_what_is_found() -> None:
    with with_replicas(1) as (primary, [replica]):
        url = f"{primary.url}?wait_replicas=1&wait_timeout=0.2"
        with record_client(url) as records, record_client(url) as reader:
            _until_confirmed(records)
            for check in CHECKS:
                check(records)
            assert reader.read("a") is None
            replica.pause()
            try:
                with pytest.raises(OutcomeUnknown, match="confirmed"):
                    records.swap("a", 0, b"one")
                with pytest.raises(BackendUnavailable, match="confirmed"):
                    reader.read("a")
                with pytest.raises(BackendUnavailable, match="confirmed"):
                    reader.swap("a", 0, b"two")
                with pytest.raises(BackendUnavailable, match="confirmed"):
                    records.touch(("a", "me"))
            finally:
                replica.resume()
            _until_confirmed(records)
            found = records.read("a")
            assert found is not None
            assert found.data == b"one"


def _until_confirmed(records: RecordClient) -> None:
    """A replica that has just begun to follow, or was stopped, confirms a little later."""
    end = time.monotonic() + 30
    while True:
        try:
            records.read("unused")
            return
        except BackendUnavailable:
            assert time.monotonic() < end


def test_a_slot_that_moves() -> None:
    """What is there can be read, and is kept alive, at every moment; what cannot be written is refused."""
    with with_cluster() as nodes, record_client(f"redis+cluster://127.0.0.1:{nodes[0].port}") as records:
        source, target = nodes[0], nodes[1]
        source_id, target_id = (node.raw("CLUSTER", "MYID").split(b"\r\n")[1].decode() for node in (source, target))
        bucket = next(number for number in range(BUCKETS_COUNT) if slot_of(b"{%d}" % number) < 16384 // 3)
        old, new = [key for key in map(str, range(999)) if crc32(key.encode()) % BUCKETS_COUNT == bucket][:2]
        slot, index = str(slot_of(b"{%d}" % bucket)), f"holdfast/records{{{bucket}}}"
        first = records.swap(old, 0, b"x", ttl=60).record
        assert first is not None
        target.raw("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.raw("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        for moved in (f"holdfast/record{{{bucket}}}/{old}", index, f"{index}/state"):
            found = records.read(old)
            assert found is not None
            assert found.version == first.version
            assert records.touch((old, "me")) == [True]
            with pytest.raises(BackendUnavailable, match="TRYAGAIN"):
                records.swap(new, 0, b"x")
            source.raw("MIGRATE", "127.0.0.1", str(target.port), moved, "0", "5000", "REPLACE")
        for node in (target, source, nodes[2]):
            node.raw("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        assert records.swap(old, first.version, b"y").done
        assert records.swap(new, 0, b"x").done
        assert records.keys("") == sorted([old, new])
