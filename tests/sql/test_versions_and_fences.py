"""`versioned_update`, `retry` and `Fence`, in the user's own transaction."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.cas import Stats
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.sql import Fence, Missing, VersionConflict, lock_row, retry, versioned_update
from tests.sql.connections import LIBRARIES, connected, opened, plain


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_quicker_one_wins(url: str, library: str) -> None:
    with connected(library, url) as first, connected(library, url) as second:
        assert versioned_update(first, "orders", {"id": 7}, 1, {"paid": 5}) == 2
        first.commit()
        with pytest.raises(VersionConflict):
            versioned_update(second, "orders", {"id": 7}, 1, {"paid": 9})
        assert lock_row(second, "orders", {"id": 7}) == {"id": 7, "paid": 5, "version": 2}
        with pytest.raises(Missing):
            versioned_update(second, "orders", {"id": 8}, 1, {"paid": 9})
        with pytest.raises(Misconfigured):
            versioned_update(second, "orders", {"id": 7}, 2, {"version": 9})


def test_the_quicker_one_wins_in_sqlite(shop: Path) -> None:
    with opened(shop) as connection:
        assert versioned_update(connection, "orders", {"id": 7}, 1, {"paid": 5}) == 2
        with pytest.raises(VersionConflict):
            versioned_update(connection, "orders", {"id": 7}, 1, {"paid": 9})
        with pytest.raises(Missing):
            versioned_update(connection, "orders", {"id": 8}, 1, {"paid": 9})


def test_a_key_of_several_rows_is_told(shop: Path) -> None:
    """They have been set, and not left alone: nothing else may be said of it."""
    with opened(shop) as connection:
        connection.execute("CREATE TABLE lines (order_id INTEGER, paid INTEGER, version INTEGER)")
        connection.execute("INSERT INTO lines VALUES (7, 0, 1), (7, 0, 1)")
        with pytest.raises(Misconfigured, match="2 rows, and all of them were set: roll back"):
            versioned_update(connection, "lines", {"order_id": 7}, 1, {"paid": 5})


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_conflict_under_repeatable_read_is_a_conflict(url: str, library: str) -> None:
    """PostgreSQL has an error of its own for it, which `retry` would not try again."""
    with connected(library, url) as first, connected(library, url) as second:
        plain(first, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        plain(first, "SELECT * FROM orders")
        versioned_update(second, "orders", {"id": 7}, 1, {"paid": 5})
        second.commit()
        with pytest.raises(VersionConflict):
            versioned_update(first, "orders", {"id": 7}, 1, {"paid": 9})


def test_a_conflict_with_what_was_read_before_is_one_in_sqlite(shop: Path) -> None:
    with opened(shop) as first, opened(shop) as second:
        first.execute("PRAGMA journal_mode = wal")
        first.execute("BEGIN")
        first.execute("SELECT * FROM orders").fetchall()
        versioned_update(second, "orders", {"id": 7}, 1, {"paid": 5})
        second.commit()
        with pytest.raises(VersionConflict):
            versioned_update(first, "orders", {"id": 7}, 1, {"paid": 9})


def test_rows_are_read_whatever_the_row_factory(url: str, shop: Path) -> None:
    import psycopg
    from psycopg.rows import scalar_row

    order = {"id": 7, "paid": 0, "version": 1}
    with psycopg.connect(url, row_factory=scalar_row) as connection:
        assert lock_row(connection, "orders", {"id": 7}) == order
        with connection.pipeline(), pytest.raises(Misconfigured, match="pipeline"):
            lock_row(connection, "orders", {"id": 7})
    with opened(shop) as connection:
        connection.row_factory = lambda cursor, row: object()
        assert lock_row(connection, "orders", {"id": 7}) == order


def test_retry_refuses_what_would_not_be_awaited() -> None:
    async def work() -> None:
        raise VersionConflict("orders", {"id": 7}, 1)

    with pytest.raises(Misconfigured, match="has done nothing yet"):
        retry(lambda: work())  # type: ignore[unused-coroutine]


def test_retry_loses_no_update(url: str) -> None:
    """Four threads add to one row, optimistically; every addition is there."""
    import psycopg

    def add(connection: Any) -> None:
        row = connection.execute("SELECT paid, version FROM orders WHERE id = 7").fetchone()
        try:
            versioned_update(connection, "orders", {"id": 7}, row[1], {"paid": row[0] + 1})
            connection.commit()
        except VersionConflict:
            connection.rollback()
            raise

    stats = Stats()

    def work() -> None:
        with psycopg.connect(url) as connection:
            for _ in range(10):
                retry(lambda: add(connection), attempts=100, stats=stats)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with connected("psycopg", url) as connection:
        assert lock_row(connection, "orders", {"id": 7}) == {"id": 7, "paid": 40, "version": 41}
    assert stats.updates == 40
    assert stats.tries == 40 + stats.conflicts


def test_retry_gives_up() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise VersionConflict("orders", {"id": 7}, 1)

    stats = Stats()
    with pytest.raises(VersionConflict):
        retry(work, attempts=3, base=0.0001, stats=stats)
    assert len(calls) == 3
    assert stats == Stats(updates=0, tries=3, conflicts=3)
    with pytest.raises(VersionConflict):
        retry(work, timeout=0)
    assert len(calls) == 4


def test_retry_does_not_wait_for_a_row_that_is_not_there() -> None:
    calls = []

    def work() -> None:
        calls.append(1)
        raise Missing("orders", {"id": 8})

    with pytest.raises(Missing):
        retry(work)
    assert len(calls) == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_stale_holder_is_refused_and_changes_nothing(url: str, library: str) -> None:
    with connected(library, url) as newer, connected(library, url) as stale:
        Fence(newer).claim("orders/7", 34)
        newer.commit()
        with pytest.raises(FenceRejected) as refusal:
            Fence(stale).claim("orders/7", 33)
        assert refusal.value.mark == 34
        plain(stale, "SELECT 1")  # the transaction is still good
        Fence(stale).claim("orders/7", 34)


def test_a_newer_claim_waits_for_the_transaction_of_the_older(url: str) -> None:
    """So nothing of the older holder's lands after the newer one's first read."""
    import psycopg

    with connected("psycopg", url) as older, psycopg.connect(url) as newer:
        Fence(older).claim("orders/7", 33)
        older.commit()
        Fence(older).claim("orders/7", 33)
        plain(older, "UPDATE orders SET paid = 5 WHERE id = 7")
        newer.execute("SET LOCAL lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            Fence(newer).claim("orders/7", 34)
        newer.rollback()
        older.commit()
        Fence(newer).claim("orders/7", 34)
        assert newer.execute("SELECT paid FROM orders WHERE id = 7").fetchone() == (5,)
        newer.commit()
        with pytest.raises(FenceRejected):
            Fence(older).claim("orders/7", 33)


def test_a_mark_is_rolled_back_with_its_transaction(url: str) -> None:
    with connected("psycopg", url) as connection:
        Fence(connection).claim("orders/7", 33)
        connection.commit()
        Fence(connection).claim("orders/7", 40)
        connection.rollback()
        Fence(connection).claim("orders/7", 34)


def test_sqlite_has_its_own_fence(shop: Path) -> None:
    with opened(shop) as connection:
        Fence(connection).claim("orders/7", 34)
        connection.commit()
        with pytest.raises(FenceRejected):
            Fence(connection).claim("orders/7", 33)
