"""A transaction that appends, and has read before others appended: whatever it sees of the log has no hole.

MariaDB's REPEATABLE READ, its default, shows it its own events and not those that came between its read and its append.
"""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.log import (
    ANY,
    START,
    Consumer,
    EventData,
    Folded,
    RecordedEvent,
    Truncated,
    append,
    fold,
    read,
    tail,
    truncate,
)
from tests.log.databases import Database, execute

NOTHING: list[int] = []


def put(connection: Any, *data: object, stream: str = "s") -> None:
    for each in data:
        append(connection, stream, EventData("happened", each), expected=ANY)


def listed(state: list[int], event: RecordedEvent) -> list[int]:
    return [*state, event.data]


def appended_after_others(database: Database) -> tuple[Any, Any]:
    """One that has read 1, then others append 2, then it appends 3, which it has not committed; and another one."""
    one, other = database.connect(), database.connect()
    put(one, 1)
    one.commit()
    assert [event.data for event in tail(one)] == [1]
    put(other, 2)
    other.commit()
    put(one, 3)
    return one, other


def test_a_stream_is_read_and_folded_whole(database: Database) -> None:
    one, other = appended_after_others(database)
    assert [event.data for event in read(one, "s")] == [1, 2, 3]
    assert [event.data for event in read(one, "s", after=1)] == [2, 3], "not told that it was truncated"
    assert fold(one, "s", listed, NOTHING, snapshot="whole", every=1) == Folded([1, 2, 3], 3)
    one.commit()
    assert fold(other, "s", listed, NOTHING, snapshot="whole", every=1) == Folded([1, 2, 3], 3)


def test_a_tail_skips_nothing(database: Database) -> None:
    one, _ = appended_after_others(database)
    seen = tail(one)
    one.commit()
    seen += tail(one, after=seen[-1].position if seen else START)
    assert [event.data for event in seen] == [1, 2, 3]


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)  # SQLite: one that polls is alone
def test_a_consumer_that_appends_and_polls_again_skips_nothing(database: Database, partitions: int) -> None:
    one, other = database.connect(), database.connect()
    consumers = [Consumer(one, "c", lease=1, partition=part, partitions=partitions) for part in range(partitions)]
    seen: list[object] = []

    def consume() -> bool:
        events = [event for consumer in consumers for event in take(consumer)]
        seen.extend(event.data for event in events)
        return bool(events)

    put(one, "first")
    one.commit()
    assert consume()
    for number in range(6):
        put(other, number, stream=f"other-{number}")
    other.commit()
    put(one, "own")
    consume()
    one.commit()
    while consume():
        one.commit()
    assert sorted(map(str, seen)) == ["0", "1", "2", "3", "4", "5", "first", "own"]


def take(consumer: Consumer) -> list[RecordedEvent]:
    events = consumer.poll()
    if events:
        consumer.acknowledge(events[-1].position)
    return events


def test_events_of_a_truncated_stream_are_no_hole(mariadb: Database) -> None:
    one, other = mariadb.connect(), mariadb.connect()
    for number in range(4):
        put(one, number, stream=f"s{number % 2}")
    one.commit()
    begin = tail(one)[0].position
    truncate(other, "s1", before=2)
    other.commit()
    one.rollback()
    put(one, "own")
    assert [event.data for event in tail(one, after=begin, allow_truncated=True)] == [2, 3, "own"]


def test_with_snapshot_isolation_a_truncation_ends_no_reader(mariadb: Database) -> None:
    """MariaDB's default since 11.6: who locks what has changed since its first read has its transaction ended."""
    one, other = mariadb.connect(), mariadb.connect()
    for number in range(6):
        put(one, number, stream=f"s{number % 2}")
    one.commit()
    truncate(other, "s1", before=2)
    other.commit()
    execute(one, "SET SESSION innodb_snapshot_isolation = ON")
    begin = tail(one, allow_truncated=True)[0].position
    truncate(other, "s1", before=3)
    other.commit()
    assert [event.data for event in tail(one, after=begin, allow_truncated=True)] == [2, 3, 4, 5]
    with pytest.raises(Truncated):
        read(one, "s1")
    assert execute(one, "SELECT @@in_transaction") == [(1,)]
