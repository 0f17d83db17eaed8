"""Append: in the user's transaction, at the expected version, the same ids once, with the lease's token."""

from __future__ import annotations

import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import FenceRejected, Misconfigured
from holdfast.log import ANY, NONE, AppendConflict, EventData, EventIdConflict, append, fold, read, tail
from holdfast.log.model import MAX_APPEND_BYTES, MAX_DATA_BYTES
from holdfast.sql import retry
from tests.log.databases import Database, everywhere, execute


def events(*ids: str, data: object = None) -> list[EventData]:
    return [EventData("happened", data, id=name) for name in ids]


def ids(connection: Any, stream: str = "s") -> list[str]:
    return [event.id for event in read(connection, stream)]


@everywhere
def test_events_are_read_as_they_were_appended(database: Database) -> None:
    data = {"text": "ünï \x00 😀 \ud800", "list": [1, 2.5, None, True], "nested": {"a": []}}
    connection = database.connect()
    assert append(connection, "käufe/7 %s {} :x", EventData("paid ü", data, id="ïd"), expected=NONE) == 1
    connection.commit()
    other = database.connect()
    (event,) = read(other, "käufe/7 %s {} :x")
    assert (event.stream, event.version, event.id) == ("käufe/7 %s {} :x", 1, "ïd")
    assert (event.type, event.data) == ("paid ü", data)
    assert read(other, "KÄUFE/7 %s {} :x") == []


def test_an_append_stands_or_falls_with_the_transaction(database: Database) -> None:
    database.execute("CREATE TABLE orders (id integer)")
    connection = database.connect()
    append(connection, "s", events("a"), expected=NONE)
    execute(connection, "INSERT INTO orders VALUES (7)")
    connection.rollback()
    assert ids(connection) == []
    append(connection, "s", events("b", "c"), expected=NONE)
    execute(connection, "INSERT INTO orders VALUES (8)")
    connection.commit()
    assert database.execute("SELECT id FROM orders") == [(8,)]
    assert ids(database.connect()) == ["b", "c"]


@everywhere
def test_a_conflict_tells_the_real_version_and_changes_nothing(database: Database) -> None:
    connection = database.connect()
    append(connection, "s", events("a", "b"), expected=NONE)
    connection.commit()
    for expected, stream, actual in ((NONE, "s", 2), (1, "s", 2), (3, "s", 2), (0, "s", 2), (4, "unknown", 0)):
        with pytest.raises(AppendConflict, match=str(actual)) as caught:
            append(connection, stream, events("c"), expected=expected)
        assert caught.value.actual == actual
        assert pickle.loads(pickle.dumps(caught.value)).actual == actual
    connection.commit()
    assert ids(connection) == ["a", "b"]
    assert append(connection, "s", events("c"), expected=2) == 3
    assert append(connection, "s", events("d"), expected=ANY) == 4
    connection.commit()
    if database.engine != "redis":
        assert database.execute("SELECT count(*) FROM holdfast_log_stream") == [(1,)]


@everywhere
def test_the_same_ids_are_the_same_append(database: Database) -> None:
    connection = database.connect()
    append(connection, "s", events("a"), expected=NONE)
    assert append(connection, "s", events("b", "c", data={"n": 1}), expected=1) == 3
    connection.commit()
    append(connection, "s", events("d"), expected=ANY)
    connection.commit()
    for expected in (1, 4, ANY, NONE, 77):
        other = database.connect()
        assert append(other, "s", events("b", "c", data={"n": 1}), expected=expected) == 3
        other.commit()
    assert append(connection, "s", events("a"), expected=NONE) == 1
    connection.commit()
    assert ids(connection) == ["a", "b", "c", "d"]
    assert append(connection, "other", events("a"), expected=NONE) == 1


@everywhere
@pytest.mark.parametrize("letter", ["x", '"'], ids=["plain", "quoted"])
def test_the_largest_append(database: Database, letter: str) -> None:
    """More than one packet of MariaDB may have."""
    connection = database.connect()
    text = letter * ((MAX_DATA_BYTES - 2) // (len(json.dumps(letter)) - 2))
    large = [EventData("happened", text) for _ in range(MAX_APPEND_BYTES // MAX_DATA_BYTES)]
    assert append(connection, "s", large, expected=NONE) == len(large)
    assert append(connection, "s", large, expected=NONE) == len(large)
    connection.commit()
    found = tail(connection)
    assert [event.version for event in found] == list(range(1, len(large) + 1))
    assert [event.id for event in found] == [event.id for event in large]
    assert all(event.data == text for event in found)


@everywhere
@pytest.mark.parametrize("expected", [4, ANY])
def test_a_partial_overlap_is_an_error(database: Database, expected: Any) -> None:
    connection = database.connect()
    append(connection, "s", events("a", "b", "c", "d"), expected=NONE)
    connection.commit()
    for wrong in (
        events("d", "e"),
        events("e", "a"),
        events("b", "a"),
        events("a", "c"),
        [EventData("other", None, id="d")],
        [EventData("happened", 1, id="d")],
    ):
        with pytest.raises(EventIdConflict, match="nothing was appended"):
            append(connection, "s", wrong, expected=expected)
    connection.commit()
    assert ids(connection) == ["a", "b", "c", "d"]
    assert append(connection, "s", events("e"), expected=4) == 5


@everywhere
def test_a_stale_holder_cannot_append(database: Database) -> None:
    connection = database.connect()
    append(connection, "s", events("a"), expected=NONE, lease=34)
    connection.commit()
    with pytest.raises(FenceRejected, match="log/s"):
        append(connection, "s", events("b"), expected=1, lease=33)
    connection.rollback()
    assert append(connection, "s", events("b"), expected=1, lease=34) == 2
    assert append(connection, "t", events("b"), expected=NONE, lease=1) == 1
    connection.commit()
    assert ids(connection) == ["a", "b"]


@everywhere
def test_many_writers_of_one_stream(database: Database) -> None:
    """No version twice, none missing, none lost: by folding and expecting, and with ANY."""
    begin = database.connect()
    append(begin, "s", events("first"), expected=NONE)
    begin.commit()
    failed: list[BaseException] = []

    def write(number: int) -> None:
        connection = database.open()
        try:
            for turn in range(6):

                def once(turn: int = turn) -> None:
                    try:
                        version = ANY if number % 2 else fold(connection, "s", lambda n, e: n + 1, 0).version
                        append(connection, "s", events(f"{number}.{turn}a", f"{number}.{turn}b"), expected=version)
                        connection.commit()
                    except BaseException:
                        connection.rollback()
                        raise

                retry(once, attempts=500, base=0.002, cap=0.05, timeout=100)
        except BaseException as error:  # noqa: BLE001  raised by the test
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    found = read(database.connect(), "s")
    assert [event.version for event in found] == list(range(1, 74))
    assert len({event.id for event in found}) == 73
    assert [event.position for event in found] == sorted(event.position for event in found)
    for number in range(6):
        mine = [event.id for event in found if event.id.startswith(f"{number}.")]
        assert mine == [f"{number}.{turn}{half}" for turn in range(6) for half in "ab"]


@pytest.mark.parametrize("library", ["psycopg", "pymysql"])
def test_autocommit_is_refused(request: pytest.FixtureRequest, tmp_path: Any, library: str) -> None:
    from tests.log.conftest import new_database

    database = new_database("postgresql" if library == "psycopg" else "mariadb", request, tmp_path)
    with database.stack:
        connection = database.connect()
        connection.autocommit(True) if library == "pymysql" else connection.set_autocommit(True)
        for expected in (NONE, ANY):
            for _ in range(2):
                with pytest.raises(Misconfigured, match="autocommit"):
                    append(connection, "s", events("a"), expected=expected)
        plain = database.connect()
        append(plain, "s", events("a"), expected=NONE)
        plain.commit()
        with pytest.raises(Misconfigured, match="autocommit"):
            append(connection, "s", events("b"), expected=1)
        assert ids(database.connect()) == ["a"]


@pytest.mark.parametrize("isolation_level", ["", "IMMEDIATE", None])
def test_sqlite_begins_a_transaction_where_there_is_none(tmp_path: Any, isolation_level: Any) -> None:
    import sqlite3

    connection: Any = sqlite3.connect(tmp_path / "x.db", isolation_level=isolation_level)
    with pytest.raises(AppendConflict):
        append(connection, "s", events("b"), expected=1)
    assert not connection.in_transaction
    append(connection, "s", events("a"), expected=NONE)
    assert connection.in_transaction is True
    connection.rollback()
    assert ids(connection) == []
    append(connection, "s", events("a"), expected=NONE)
    with pytest.raises(AppendConflict):
        append(connection, "s", events("b"), expected=7)
    assert connection.in_transaction, "the user's own stays as it is"
    connection.commit()
    append(connection, "s", events("b"), expected=1, lease=2)
    connection.commit()
    for lease, error in ((1, FenceRejected), (2, AppendConflict)):
        with pytest.raises(error):
            append(connection, "s", events("c"), expected=7, lease=lease)
        assert not connection.in_transaction
    assert ids(connection) == ["a", "b"]
    connection.close()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_snapshot_that_is_too_old_is_a_conflict(postgresql: Database, level: str) -> None:
    """What was folded is not what is there: retried, as any conflict."""
    begin = postgresql.connect()
    append(begin, "s", events("a"), expected=NONE)
    begin.commit()
    old, new = postgresql.connect(), postgresql.connect()
    execute(old, f"SET TRANSACTION ISOLATION LEVEL {level}")
    version = fold(old, "s", lambda n, e: n + 1, 0).version
    append(new, "s", events("b"), expected=1)
    new.commit()
    with pytest.raises(AppendConflict) as caught:
        append(old, "s", events("c"), expected=version)
    assert caught.value.actual is None


def test_an_old_snapshot_is_a_conflict_on_sqlite_and_mariadb(database: Database) -> None:
    begin = database.connect()
    append(begin, "s", events("a"), expected=NONE)
    begin.commit()
    old, new = database.connect(), database.connect()
    execute(old, "BEGIN")
    version = fold(old, "s", lambda n, e: n + 1, 0).version
    append(new, "s", events("b"), expected=1)
    new.commit()
    with pytest.raises(AppendConflict):
        append(old, "s", events("c"), expected=version)
    old.rollback()
    assert append(old, "s", events("c"), expected=2) == 3


def test_mariadb_says_that_the_tables_are_missing(mariadb_server: Any) -> None:
    from contextlib import closing

    from tests.mysql.server import connect

    with closing(connect(mariadb_server.port)) as connection:
        execute(connection, "CREATE DATABASE IF NOT EXISTS without_log")
        execute(connection, "USE without_log")
        for call in (lambda: append(connection, "s", events("a"), expected=ANY), lambda: read(connection, "s")):
            with pytest.raises(Misconfigured, match="holdfast schema --log mysql"):
                call()


def test_in_a_transaction_that_the_append_begins_nothing_is_left_of_one_that_fails(database: Database) -> None:
    """On SQLite it has no savepoint then. The same ids are the same append, and others among them are refused."""
    connection = database.connect()
    first = events("a", "b")
    assert append(connection, "s", first, expected=NONE) == 2
    connection.commit()
    assert append(connection, "s", first, expected=2) == 2
    connection.commit()
    for failing in ([*first, *events("c")], [*events("c"), first[0]]):
        with pytest.raises(EventIdConflict):
            append(connection, "s", failing, expected=2)
        connection.commit()
        assert [event.version for event in read(connection, "s")] == [1, 2]
    assert append(connection, "s", events("d"), expected=2) == 3


def test_an_append_that_is_interrupted_in_a_transaction_of_its_own_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the transaction is committed then: on SQLite there is none any more."""
    from holdfast.sql.sync import runner

    connection, execute_one = database.connect(), runner._execute
    append(connection, "s", events("a"), expected=NONE)
    connection.commit()

    def interrupted(connection: Any, adapter: Any, statement: Any, cursors: list[Any]) -> Any:
        if statement.text.startswith("INSERT INTO holdfast_log "):
            raise KeyboardInterrupt
        return execute_one(connection, adapter, statement, cursors)

    monkeypatch.setattr(runner, "_execute", interrupted)
    if database.engine != "postgresql":  # which has one statement
        with pytest.raises(KeyboardInterrupt):
            append(connection, "s", events("b"), expected=1)
    monkeypatch.undo()
    connection.commit()
    assert append(connection, "s", events("c"), expected=1) == 2


def test_so_does_one_through_sqlalchemy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction is not rolled back by the runner."""
    from holdfast.sql.sync import runner

    sqlalchemy = pytest.importorskip("sqlalchemy")
    execute_one = runner._execute

    def interrupted(connection: Any, adapter: Any, statement: Any, cursors: list[Any]) -> Any:
        if statement.text.startswith("INSERT INTO holdfast_log "):
            raise KeyboardInterrupt
        return execute_one(connection, adapter, statement, cursors)

    with sqlalchemy.create_engine(f"sqlite:///{tmp_path}/log.db").connect() as connection:
        append(connection, "s", events("a"), expected=NONE)
        connection.commit()
        monkeypatch.setattr(runner, "_execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            append(connection, "s", events("b"), expected=1)
        monkeypatch.undo()
        connection.commit()
        assert append(connection, "s", events("c"), expected=1) == 2


def test_the_statements_of_an_append(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: they are the trips that an append costs in a transaction that is open."""
    from holdfast.sql.sync import runner

    sent: list[str] = []
    execute_one = runner._execute

    def counted(connection: Any, adapter: Any, statement: Any, cursors: list[Any]) -> Any:
        sent.append(statement.text)
        return execute_one(connection, adapter, statement, cursors)

    connection = database.connect()
    append(connection, "s", events("a"), expected=NONE)
    connection.commit()
    monkeypatch.setattr(runner, "_execute", counted)
    counts = []
    for expected in (1, ANY):
        sent.clear()
        append(connection, "s", [EventData("happened") for _ in range(100)], expected=expected)
        connection.commit()
        counts.append(len(sent))
    assert counts == {"postgresql": [2, 3], "mariadb": [4, 6], "sqlite": [3, 5]}[database.engine], sent
