"""The partitions of a consumer share the streams; one without events keeps up, and is told what it has missed."""

from __future__ import annotations

import pytest

from holdfast.errors import Misconfigured
from holdfast.log import (
    ANY,
    START,
    Consumer,
    EventData,
    Position,
    Truncated,
    append,
    tail,
    truncate,
    truncate_log,
)
from holdfast.recipes.partition_spec import shard_of
from tests.log.databases import Database, everywhere
from tests.log.test_consumer import fill, polled


@everywhere
def test_partitions_share_the_streams(database: Database) -> None:
    streams = [f"orders/{number % 30}" for number in range(120)]
    connection = fill(database, *streams)
    seen: list[int] = []
    for part in range(7):
        consumer = Consumer(connection, "billing", lease=5, partition=part, partitions=7)
        mine = consumer.poll(1000)
        assert {shard_of(event.stream, 7) for event in mine} == {part}
        assert [event.position for event in mine] == sorted(event.position for event in mine)
        seen += [event.data for event in mine]
        consumer.acknowledge(mine[-1].position)
        assert consumer.poll() == []
    assert sorted(seen) == list(range(120))
    connection.commit()
    with pytest.raises(Misconfigured, match="7 partitions, not for 8"):
        Consumer(connection, "billing", lease=5, partitions=8).poll()


@everywhere
def test_an_idle_partition_keeps_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither reads others' events again and again, nor is it told of a truncation that does not concern it."""
    monkeypatch.setattr("holdfast.log.cursors.WINDOW_COUNT", 10)
    monkeypatch.setattr("holdfast.log.redis.flows.PAGE_COUNT", 10)
    busy = next(f"s{n}" for n in range(100) if shard_of(f"s{n}", 2) == 0)
    other = next(f"s{n}" for n in range(100) if shard_of(f"s{n}", 2) == 1)
    connection = fill(database, *[busy] * 45)
    idle = Consumer(connection, "billing", lease=5, partition=1, partitions=2)
    last = tail(connection)[-1].position
    assert idle.poll() == []
    assert idle.cursor() == last
    connection.commit()
    while truncate_log(connection, before=Position(last.major, last.minor + 1), limit=20) == 20:
        connection.commit()
    truncate(connection, busy, before=100)
    connection.commit()
    assert idle.poll() == []
    append(connection, other, EventData("happened", "new", id="n"), expected=ANY)
    connection.commit()
    assert polled(idle) == ["new"]
    with pytest.raises(Truncated):
        Consumer(connection, "billing", lease=5, partition=0, partitions=2).poll()
    connection.rollback()
    assert polled(Consumer(connection, "billing", lease=5, partition=1, partitions=2)) == ["new"]


@everywhere
def test_a_partition_whose_events_were_removed_is_told_so_again_and_again(database: Database) -> None:
    """Also if what is left belongs to others: it would go on in silence."""
    mine = next(f"s{n}" for n in range(100) if shard_of(f"s{n}", 2) == 1)
    other = next(f"s{n}" for n in range(100) if shard_of(f"s{n}", 2) == 0)
    connection = fill(database, mine, other)
    truncate(connection, mine, before=2)
    connection.commit()
    consumer = Consumer(connection, "billing", lease=5, partition=1, partitions=2)
    for _ in range(2):
        with pytest.raises(Truncated):
            consumer.poll()
        connection.rollback()
    assert consumer.cursor() == START
    assert consumer.poll(allow_truncated=True) == []
    connection.commit()
    assert consumer.poll() == []


@everywhere
def test_an_event_of_another_partition_is_not_acknowledged(database: Database) -> None:
    """It was not polled here, and events before it were not, either: they would be skipped."""
    mine = next(f"s{n}" for n in range(100) if shard_of(f"s{n}", 2) == 0)
    other = next(f"s{n}" for n in range(100) if shard_of(f"s{n}", 2) == 1)
    connection = fill(database, mine, other)
    consumers = [Consumer(connection, "billing", lease=5, partition=part, partitions=2) for part in (0, 1)]
    [foreign] = consumers[1].poll()
    with pytest.raises(Misconfigured, match="there is no event that a poll could have given it there"):
        consumers[0].acknowledge(foreign.position)
    assert polled(consumers[0]) == [0]
    consumers[1].acknowledge(foreign.position)
    connection.commit()
