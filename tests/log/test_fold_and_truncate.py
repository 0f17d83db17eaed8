"""Reading a stream, folding it with and without snapshots, and removing old events in bounded steps."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.log import (
    ANY,
    NONE,
    START,
    EventData,
    Folded,
    RecordedEvent,
    Truncated,
    append,
    fold,
    read,
    tail,
    truncate,
    truncate_log,
)
from tests.log.databases import Database, everywhere, execute


def fill(database: Database, stream: str, count: int, size: int = 50) -> Any:
    connection = database.connect()
    for begin in range(0, count, size):
        new = [EventData("added", number, id=f"{number}") for number in range(begin, min(begin + size, count))]
        append(connection, stream, new, expected=ANY)
    connection.commit()
    return connection


def total(state: list[int], event: RecordedEvent) -> list[int]:
    assert isinstance(event.data, int)
    return [state[0] + event.data, state[1] + 1]


@everywhere
def test_read_gives_pages(database: Database) -> None:
    connection = fill(database, "s", 12)
    assert read(connection, "nothing") == []
    assert [event.version for event in read(connection, "s", after=3, limit=4)] == [4, 5, 6, 7]
    assert [event.version for event in read(connection, "s", after=10)] == [11, 12]
    assert read(connection, "s", after=12) == read(connection, "s", after=99) == []


@everywhere
def test_there_is_nothing_to_read_before_there_is_a_log(database: Database) -> None:
    connection = database.connect()
    assert read(connection, "s") == [] == tail(connection)
    assert fold(connection, "s", total, [0, 0], snapshot="total") == Folded([0, 0], 0)
    if database.engine != "redis":
        execute(connection, "SELECT 1")  # the transaction can be used further


@everywhere
def test_a_fold_with_snapshots_is_a_fold_without(database: Database) -> None:
    connection = fill(database, "s", 0)
    seen: list[int] = []

    def counted(state: list[int], event: RecordedEvent) -> list[int]:
        seen.append(event.version)
        return total(state, event)

    for turn in range(1, 30):
        append(connection, "s", [EventData("added", turn * n) for n in range(1, 5)], expected=(turn - 1) * 4)
        plain = fold(connection, "s", total, [0, 0])
        seen.clear()
        assert fold(connection, "s", counted, [0, 0], snapshot="total", every=10) == plain
        assert len(seen) < 14, "only what lies behind the last snapshot"
        connection.commit()
    assert plain.version == 116
    assert fold(connection, "s", lambda n, e: n + 1, 0, snapshot="another") == Folded(116, 116)
    connection.commit()
    if database.engine != "redis":
        assert len(database.execute("SELECT version FROM holdfast_log_snapshot")) == 2


@everywhere
def test_a_snapshot_never_goes_back(database: Database) -> None:
    """Another fold is quicker, and has seen more."""
    connection = fill(database, "s", 5)
    seen: list[int] = []

    def slow(state: list[int], event: RecordedEvent) -> list[int]:
        if event.version == 5:
            append(connection, "s", EventData("added", 5), expected=5)
            assert fold(connection, "s", total, [0, 0], snapshot="total", every=1).version == 6
        return total(state, event)

    def counted(state: list[int], event: RecordedEvent) -> list[int]:
        seen.append(event.version)
        return total(state, event)

    assert fold(connection, "s", slow, [0, 0], snapshot="total", every=1).version == 5
    assert fold(connection, "s", counted, [0, 0], snapshot="total", every=1) == Folded([15, 6], 6)
    assert seen == []


@everywhere
def test_a_long_stream_is_folded_in_pages(database: Database) -> None:
    connection = fill(database, "s", 1203, size=400)
    assert fold(connection, "s", total, [0, 0]) == Folded([sum(range(1203)), 1203], 1203)


def test_a_snapshot_falls_with_the_transaction(database: Database) -> None:
    connection = fill(database, "s", 5)
    append(connection, "s", EventData("added", 100), expected=5)
    assert fold(connection, "s", total, [0, 0], snapshot="total", every=1).version == 6
    connection.rollback()
    assert fold(connection, "s", total, [0, 0], snapshot="total", every=1) == Folded([10, 5], 5)


@everywhere
def test_a_state_that_is_not_json_is_refused(database: Database) -> None:
    connection = fill(database, "s", 5)
    with pytest.raises(Misconfigured, match="JSON"):
        fold(connection, "s", lambda s, e: s | {e.id}, {"x"}, snapshot="ids", every=1)
    connection.rollback()
    assert fold(connection, "s", lambda s, e: s | {e.id}, {"x"}).version == 5


@everywhere
@pytest.mark.parametrize("state", [{1: "a"}, (1, 2)], ids=["keys", "tuple"])
def test_a_state_that_json_would_change_is_refused(database: Database, state: object) -> None:
    """Else the fold would go on with another state as soon as there is a snapshot."""
    connection = fill(database, "s", 5)
    with pytest.raises(Misconfigured, match="comes back from JSON as another value"):
        fold(connection, "s", lambda s, e: s, state, snapshot="same", every=1)
    connection.rollback()
    assert fold(connection, "s", lambda s, e: s, state).state == state


def test_no_snapshot_is_kept_of_what_is_not_committed(mariadb: Database) -> None:
    """It would outlive the rollback, and every append would expect a version that is not there."""
    fill(mariadb, "s", 1)
    writer, reader = mariadb.connect(), mariadb.connect()
    append(writer, "s", [EventData("happened") for _ in range(5)], expected=1)
    execute(reader, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
    assert fold(reader, "s", lambda count, e: count + 1, 0, snapshot="count", every=2) == (6, 6)
    reader.commit()
    writer.rollback()
    assert fold(mariadb.connect(), "s", lambda count, e: count + 1, 0, snapshot="count", every=2) == (1, 1)


@everywhere
def test_truncation_goes_in_steps_and_readers_behind_it_are_told(database: Database) -> None:
    connection = fill(database, "s", 30)
    fill(database, "t", 3).commit()
    fold(connection, "s", total, [0, 0], snapshot="total", every=1)
    assert [truncate(connection, "s", before=26, limit=10) for _ in range(4)] == [10, 10, 5, 0]
    connection.commit()
    with pytest.raises(Truncated, match="up to 25"):
        read(connection, "s", after=24)
    with pytest.raises(Truncated):
        fold(connection, "s", total, [0, 0])
    assert [event.version for event in read(connection, "s", after=25)] == [26, 27, 28, 29, 30]
    assert fold(connection, "s", total, [0, 0], snapshot="total") == Folded([sum(range(30)), 30], 30)
    with pytest.raises(Truncated, match="the log"):
        tail(connection)
    left = tail(connection, allow_truncated=True)
    assert [(event.stream, event.version) for event in left] == [
        *(("s", version) for version in range(26, 31)),
        *(("t", version) for version in range(1, 4)),
    ]
    assert tail(connection, after=left[0].position) == left[1:]
    assert len(read(connection, "t")) == 3


@everywhere
def test_a_stream_that_was_truncated_as_a_whole_goes_on(database: Database) -> None:
    connection = fill(database, "s", 5)
    last = tail(connection)[-1].position
    assert truncate(connection, "s", before=100) == 5
    connection.commit()
    with pytest.raises(Truncated):
        read(connection, "s")
    assert read(connection, "s", after=5) == []
    assert append(connection, "s", EventData("added", 5), expected=5) == 6
    connection.commit()
    assert [event.version for event in tail(connection, after=last)] == [6]


@everywhere
def test_the_whole_log_is_truncated_before_a_position(database: Database) -> None:
    connection = fill(database, "s", 10)
    fill(database, "t", 10)
    positions = [event.position for event in tail(connection)]
    assert [truncate_log(connection, before=positions[13], limit=6) for _ in range(4)] == [6, 6, 1, 0]
    connection.commit()
    assert [event.position for event in tail(connection, after=positions[12])] == positions[13:]
    with pytest.raises(Truncated):
        tail(connection, after=positions[11])
    with pytest.raises(Truncated):
        read(connection, "t", after=2)
    assert len(read(connection, "t", after=3)) == 7
    assert truncate_log(connection, before=START) == 0


def test_a_truncation_that_is_rolled_back_has_not_been(database: Database) -> None:
    connection = fill(database, "s", 5)
    assert truncate(connection, "s", before=4) == 3
    connection.rollback()
    assert len(tail(connection)) == 5 == len(read(connection, "s"))


def test_a_step_costs_the_same_in_a_long_log(tmp_path: Path) -> None:
    """Counted: what SQLite's machine executes for one step, in a log of 200 and of 20,000 events."""
    short, long = costs(tmp_path / "short.db", 200), costs(tmp_path / "long.db", 20_000)
    assert all(after <= before * 1.5 + 20 for before, after in zip(short, long, strict=True)), (short, long)


def costs(path: Path, count: int) -> list[int]:
    connection = sqlite3.connect(path, isolation_level=None)
    for begin in range(0, count, 1000):
        new = [EventData("added", number) for number in range(begin, min(begin + 1000, count))]
        append(connection, "s", new, expected=ANY)
        connection.execute("COMMIT")
    middle = tail(connection, limit=60)[-1].position
    steps: list[int] = []
    connection.set_progress_handler(lambda: steps.append(1), 10)
    found = []
    calls: list[Callable[[], object]] = [
        lambda: truncate(connection, "s", before=count, limit=20),
        lambda: truncate_log(connection, before=middle, limit=20),
        lambda: read(connection, "s", after=150, limit=20),
        lambda: tail(connection, limit=20, allow_truncated=True),
        lambda: append(connection, "s", EventData("added"), expected=count),
    ]
    for call in calls:
        steps.clear()
        call()
        found.append(len(steps))
        if connection.in_transaction:
            connection.execute("COMMIT")
    connection.close()
    return found


@everywhere
def test_a_fenced_fold_expects_what_it_read(database: Database) -> None:
    connection = fill(database, "s", 3)
    folded = fold(connection, "s", total, [0, 0])
    assert append(connection, "s", EventData("added", 3), expected=folded.version, lease=7) == 4
    assert (
        append(connection, "new", EventData("added", 3), expected=fold(connection, "new", total, [0, 0]).version) == 1
    )
    assert append(connection, "newer", EventData("added", 3), expected=NONE) == 1


READ_ONLY = {
    "sqlite": "PRAGMA query_only = on",
    "postgresql": "SET TRANSACTION READ ONLY",
    "mariadb": "START TRANSACTION READ ONLY",
}


def test_who_may_only_read_keeps_no_snapshot(database: Database) -> None:
    """The fold is right all the same, and its transaction goes on."""
    fill(database, "s", 3)
    reader = database.connect()
    execute(reader, READ_ONLY[database.engine])
    for _ in range(2):
        assert fold(reader, "s", total, [0, 0], snapshot="total", every=1) == Folded([3, 3], 3)
    assert execute(reader, "SELECT count(*) FROM holdfast_log_snapshot") == [(0,)]


def test_a_connection_whose_commit_does_nothing_is_refused(tmp_path: Path) -> None:
    """`autocommit=True` of Python 3.12: a transaction that was begun here could not be ended by `commit()`."""

    class Autocommit(sqlite3.Connection):
        autocommit = True

    connection = sqlite3.connect(tmp_path / "log.db", factory=Autocommit, isolation_level=None)
    with pytest.raises(Misconfigured, match="no transaction open"):
        append(connection, "s", EventData("added"), expected=ANY)
    assert not connection.in_transaction
    connection.execute("BEGIN")
    assert append(connection, "s", EventData("added"), expected=ANY) == 1
    connection.execute("COMMIT")
    connection.close()
