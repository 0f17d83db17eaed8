"""`lock_row` and `advisory_xact`: held until the user's transaction ends, and refused without breaking it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast.errors import Misconfigured, NotAcquired
from holdfast.sql import advisory_xact, lock_row, versioned_update
from tests.sql.connections import LIBRARIES, connected, opened, plain


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_row_is_locked_until_the_transaction_ends(url: str, library: str) -> None:
    with connected(library, url) as first, connected(library, url) as second:
        assert lock_row(first, "orders", {"id": 7}) == {"id": 7, "paid": 0, "version": 1}
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, nowait=True)
        assert lock_row(second, "orders", {"id": 7}, skip_locked=True) is None
        began = time.monotonic()
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, timeout=0.2)
        assert time.monotonic() - began >= 0.2
        first.rollback()
        assert lock_row(second, "orders", {"id": 7}, nowait=True) is not None
        assert lock_row(second, "public.orders", {"id": 8}) is None


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_was_refused_leaves_the_transaction_usable(url: str, library: str) -> None:
    with connected(library, url) as first, connected(library, url) as second:
        lock_row(first, "orders", {"id": 7})
        plain(second, "INSERT INTO orders VALUES (9, 0, 1)")
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, nowait=True)
        assert lock_row(second, "orders", {"id": 9}) is not None, "what was done before is still there"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_named_lock_ends_with_the_transaction(url: str, library: str) -> None:
    with connected(library, url) as first, connected(library, url) as second:
        advisory_xact(first, "nightly")
        for timeout in (0, 0.05):
            with pytest.raises(NotAcquired):
                advisory_xact(second, "nightly", timeout=timeout)
        advisory_xact(second, "nightly", timeout=0, namespace="other")
        first.rollback()
        advisory_xact(second, "nightly", timeout=0)


def test_a_named_lock_is_shared_where_it_is_asked_for(url: str) -> None:
    with connected("psycopg", url) as first, connected("psycopg", url) as second:
        advisory_xact(first, "nightly", shared=True)
        advisory_xact(second, "nightly", shared=True, timeout=0)
        with pytest.raises(NotAcquired):
            advisory_xact(second, "nightly", timeout=0)


def test_sqlite_locks_its_one_writer(shop: Path) -> None:
    with opened(shop) as first, opened(shop) as second:
        assert lock_row(first, "orders", {"id": 7}) == {"id": 7, "paid": 0, "version": 1}
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, nowait=True)
        first.rollback()
        assert lock_row(second, "orders", {"id": 7}, timeout=0.5) is not None
        with pytest.raises(Misconfigured, match="skipped"):
            lock_row(second, "orders", {"id": 7}, skip_locked=True)
        with pytest.raises(Misconfigured, match="lock_row"):
            advisory_xact(second, "nightly")


@pytest.mark.parametrize(
    ("table", "key", "options"),
    [
        ("orders; DROP TABLE orders", {"id": 7}, {}),
        ("orders", {"id = 7 OR 1": 1}, {}),
        ("orders", {}, {}),
        ("orders", {"id": 7}, {"nowait": True, "timeout": 1}),
    ],
)
def test_bad_input_is_refused(url: str, table: str, key: dict[str, int], options: dict[str, bool]) -> None:
    with connected("psycopg", url) as connection, pytest.raises(Misconfigured):
        lock_row(connection, table, key, **options)


def test_autocommit_is_refused(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(Misconfigured, match="transaction"):
            lock_row(connection, "orders", {"id": 7})
        with connection.transaction():
            assert lock_row(connection, "orders", {"id": 7}) is not None


def test_other_things_are_refused() -> None:
    with pytest.raises(Misconfigured, match="psycopg"):
        lock_row(object(), "orders", {"id": 7})


def test_sqlite_locks_also_in_a_transaction_that_has_only_read(shop: Path) -> None:
    with opened(shop) as first, opened(shop) as second:
        first.execute("BEGIN DEFERRED")
        first.execute("SELECT * FROM orders").fetchall()
        assert lock_row(first, "orders", {"id": 7}) is not None
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, nowait=True)
        first.rollback()


def test_sqlite_refuses_a_row_that_was_written_since_the_transaction_read(shop: Path) -> None:
    with opened(shop) as first, opened(shop) as second:
        first.execute("PRAGMA journal_mode = WAL")
        first.execute("BEGIN DEFERRED")
        first.execute("SELECT * FROM orders").fetchall()
        second.execute("UPDATE orders SET paid = 100")
        second.commit()
        with pytest.raises(Misconfigured, match="lock first"):
            lock_row(first, "orders", {"id": 7}, timeout=0.1)
        first.rollback()
        row = lock_row(first, "orders", {"id": 7})
        assert row is not None
        assert row["paid"] == 100


def test_an_error_that_means_nothing_to_us_is_the_library_s_own(shop: Path) -> None:
    import sqlite3

    with opened(shop) as first, opened(shop) as second:
        second.execute("PRAGMA busy_timeout = 0")
        lock_row(first, "orders", {"id": 7})
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            versioned_update(second, "orders", {"id": 7}, 1, {"paid": 5})
