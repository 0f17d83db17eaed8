"""A log in Redis on a replica, and after a fail-over that loses what was acknowledged: as docs/log.md says it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.errors import FenceRejected, OutcomeUnknown
from holdfast.log import ANY, Consumer, EventData, Folded, append, fold, read, tail, truncate
from tests.support.redis_server import RedisServer, running
from tests.support.redis_topologies import await_true, with_replicas


def one(name: str) -> EventData:
    return EventData("happened", id=name)


def test_a_replica_may_be_read() -> None:
    with with_replicas(1) as (primary, [replica]), primary.client() as client, replica.client() as reader:
        append(client, "s", [one("a"), one("b")], expected=ANY)
        await_true(lambda: len(tail(reader)) == 2, "the replica")
        counted = fold(reader, "s", lambda count, event: count + 1, 0, snapshot="count", every=1)
        assert counted == Folded(2, 2), "and no snapshot is kept"
        truncate(client, "s", before=2)
        await_true(lambda: len(tail(reader, allow_truncated=True)) == 1, "the replica")
        assert read(reader, "s", after=1) == read(client, "s", after=1)
        with pytest.raises(OutcomeUnknown, match="read only"):
            append(reader, "s", one("c"), expected=ANY)


def test_what_a_fail_over_loses_it_loses_in_step() -> None:
    """Events, versions, cursors and marks of one moment: no cursor lies beyond what is there, and the log goes on."""
    with with_replicas(1) as (primary, [replica]), primary.client() as client:
        append(client, "s", [one("a"), one("b")], expected=ANY, lease=5)
        consumer = Consumer(client, "billing", lease=5)
        kept = consumer.poll()
        consumer.acknowledge(kept[0].position)
        assert client.wait(1, 20_000) == 1
        with replica.client() as heir:
            heir.execute_command("REPLICAOF", "NO", "ONE")
        append(client, "s", one("c"), expected=2, lease=6)  # the old primary has not heard of it
        lost = Consumer(client, "billing", lease=6).poll()[-1]
        Consumer(client, "billing", lease=6).acknowledge(lost.position)
        primary.stop()
        with replica.client() as heir:
            assert tail(heir) == kept
            assert append(heir, "s", one("d"), expected=2, lease=5) == 3, "its version is given again"
            with pytest.raises(FenceRejected):
                append(heir, "s", one("e"), expected=3, lease=4)
            member = Consumer(heir, "billing", lease=5)
            assert member.cursor() == kept[0].position
            assert [event.id for event in member.poll()] == ["b", "d"]
            assert member.poll()[-1].position > lost.position, "the clocks are in step"


@pytest.fixture
def full() -> Iterator[RedisServer]:
    with running(maxmemory="0", maxmemory_policy="noeviction") as server:
        yield server


def test_a_full_server_takes_no_event_in_half(full: RedisServer) -> None:
    """And old ones can be removed."""
    with full.client() as client:
        append(client, "s", [one(f"e{number}") for number in range(100)], expected=ANY)
        client.config_set("maxmemory", 1)
        before = {key: client.dump(key) for key in client.keys("*")}
        for stream in ("s", "new"):
            with pytest.raises(Exception, match=r"OOM|maxmemory"):
                append(client, stream, one("more"), expected=ANY, lease=7)
        assert {key: client.dump(key) for key in client.keys("*")} == before
        assert truncate(client, "s", before=51) == 50
        assert len(read(client, "s", after=50)) == 50
        client.config_set("maxmemory", 0)
        assert append(client, "s", one("more"), expected=100) == 101
