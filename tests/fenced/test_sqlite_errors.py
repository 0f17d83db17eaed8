"""What goes wrong at a claim is said in holdfast's words, with what to do; the user's own errors stay sqlite3's."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from holdfast.errors import BackendUnavailable, HoldfastError, Misconfigured
from holdfast.fenced import SQLiteFence
from tests.fenced.connections import Connect


def connect(path: Path, mode: str = "wal") -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {mode}")
    return db


def test_a_stale_snapshot_says_claim_first_then_read(tmp_path: Path) -> None:
    db, other = connect(tmp_path / "shop.db"), connect(tmp_path / "shop.db")
    db.execute("CREATE TABLE orders (paid INTEGER)")
    with SQLiteFence(db).transaction("orders", 1):
        pass
    db.execute("BEGIN DEFERRED")
    db.execute("SELECT * FROM orders").fetchall()
    other.execute("INSERT INTO orders VALUES (100)")
    with pytest.raises(Misconfigured, match="claim first and read after") as error:
        SQLiteFence(db).claim("orders", 1)
    assert isinstance(error.value.__cause__, sqlite3.OperationalError)
    assert db.in_transaction
    db.execute("ROLLBACK")
    SQLiteFence(db).claim("orders", 1)
    db.close()
    other.close()


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_read_before_the_claim_is_covered_if_nothing_was_written_since(tmp_path: Path, mode: str) -> None:
    db, other = connect(tmp_path / "shop.db", mode), connect(tmp_path / "shop.db", mode)
    db.execute("CREATE TABLE orders (paid INTEGER)")
    db.execute("BEGIN DEFERRED")
    assert db.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    SQLiteFence(db).claim("orders", 1)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("INSERT INTO orders VALUES (100)")
    db.execute("COMMIT")
    db.close()
    other.close()


def test_a_busy_database_is_unavailable_and_nothing_stays_open(shop: Connect) -> None:
    writer, db = shop(isolation_level=None), shop()
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable, match="write lock") as error:
        SQLiteFence(db).claim("orders/7", 1)
    assert isinstance(error.value.__cause__, sqlite3.OperationalError)
    assert not db.in_transaction
    writer.execute("ROLLBACK")
    SQLiteFence(db).claim("orders/7", 1)


def test_a_claim_that_failed_is_not_tried_twice(shop: Connect) -> None:
    """Only a missing table is worth a second try; a busy database has been waited for already."""
    writer, db = shop(isolation_level=None), shop(isolation_level=None)
    SQLiteFence(writer).claim("orders/7", 1)
    writer.execute("COMMIT")
    db.execute("BEGIN DEFERRED")
    writer.execute("BEGIN IMMEDIATE")
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    with pytest.raises(BackendUnavailable, match="write lock"):
        SQLiteFence(db).claim("orders/7", 1)
    assert [statement.split()[0] for statement in statements] == ["INSERT"]


def test_an_interrupted_claim_leaves_no_transaction(shop: Connect) -> None:
    db = shop()
    SQLiteFence(db).claim("orders/7", 1)
    db.commit()
    db.set_progress_handler(lambda: 1, 1)
    with pytest.raises(BackendUnavailable, match="interrupted"):
        SQLiteFence(db).claim("orders/7", 2)
    db.set_progress_handler(None, 1)
    assert not db.in_transaction
    assert SQLiteFence(db).mark("orders/7") == 1


def test_a_connection_that_only_reads_is_misconfigured(shop: Connect) -> None:
    db = shop()
    db.execute("PRAGMA query_only = ON")
    with pytest.raises(Misconfigured, match="writable"):
        SQLiteFence(db).claim("orders/7", 1)
    assert not db.in_transaction


def test_a_closed_connection_is_misconfigured(shop: Connect) -> None:
    db = shop()
    db.close()
    with pytest.raises(Misconfigured, match="closed"):
        SQLiteFence(db).claim("orders/7", 1)


def test_a_connection_of_another_thread_is_misconfigured(shop: Connect) -> None:
    db = shop()
    seen: list[HoldfastError] = []

    def elsewhere() -> None:
        try:
            SQLiteFence(db).claim("orders/7", 1)
        except HoldfastError as error:
            seen.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert isinstance(seen[0], Misconfigured)
    assert "thread" in str(seen[0])


def test_a_second_transaction_on_the_connection_is_refused(shop: Connect) -> None:
    db = shop(isolation_level=None)
    db.execute("BEGIN")
    db.execute("INSERT INTO orders VALUES (8, 0)")
    with pytest.raises(Misconfigured, match="call claim"):
        with SQLiteFence(db).transaction("orders/7", 1):
            raise AssertionError("the body was entered")
    db.execute("COMMIT")
    assert shop().execute("SELECT count(*) FROM orders").fetchone() == (2,)


def test_an_error_of_the_users_commit_stays_the_users_and_all_is_rolled_back(shop: Connect) -> None:
    db = shop(isolation_level=None)
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("CREATE TABLE lines (order_id INTEGER REFERENCES orders DEFERRABLE INITIALLY DEFERRED)")

    def body() -> None:
        with SQLiteFence(db).transaction("orders/7", 1):
            db.execute("INSERT INTO lines VALUES (99)")

    with pytest.raises(sqlite3.IntegrityError):
        body()
    assert not db.in_transaction
    assert SQLiteFence(shop()).mark("orders/7") is None


@pytest.mark.parametrize("resource", ["", "a\nb", "x" * 513, "\ud800", 7])
def test_a_bad_resource_is_refused_before_anything_is_sent(shop: Connect, resource: str) -> None:
    db = shop()
    with pytest.raises(Misconfigured, match="resource"):
        SQLiteFence(db).claim(resource, 1)
    assert not db.in_transaction
