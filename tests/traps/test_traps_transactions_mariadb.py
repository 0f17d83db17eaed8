"""TRAPS 52 on MariaDB: a claim outside a transaction, or behind a snapshot that is older than the last claim."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import sqlalchemy

from holdfast.errors import FenceRejected, Misconfigured, NotAcquired
from holdfast.sql import Fence, lock_row
from tests.mysql.server import connect
from tests.sql.test_mariadb import connected, port, shop

__all__ = ["port", "shop"]  # fixtures
Shop = tuple[int, str]


@contextmanager
def autocommitting(library: str, shop: Shop) -> Iterator[Any]:
    number, name = shop
    if library == "pymysql":
        with closing(connect(number, database=name, autocommit=True)) as connection:
            yield connection
        return
    engine = sqlalchemy.create_engine(f"mysql+pymysql://root@127.0.0.1:{number}/{name}", isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def ask(connection: Any, statement: str) -> Any:
    """The first row, if there are any."""
    if type(connection).__module__.startswith("sqlalchemy"):
        result = connection.execute(sqlalchemy.text(statement))
        return tuple(result.fetchone()) if result.returns_rows else None
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


@pytest.mark.parametrize("library", ["pymysql", "sqlalchemy"])
def test_52_autocommit_is_refused_and_leaves_no_mark(shop: Shop, library: str) -> None:
    with autocommitting(library, shop) as connection:
        for _ in range(2):  # the row is missing, and it is there
            with pytest.raises(Misconfigured, match="no transaction"):
                Fence(connection).claim("orders/7", 34)
            with connected(library, shop) as other:
                Fence(other).claim("orders/7", 33)
                other.commit()
        with pytest.raises(Misconfigured, match="no transaction"):
            lock_row(connection, "orders", {"id": 7})


def test_52_a_fence_made_inside_a_transaction_is_refused_outside_it(shop: Shop) -> None:
    with autocommitting("pymysql", shop) as connection:
        connection.begin()
        fence = Fence(connection)
        fence.claim("orders/7", 33)
        assert lock_row(connection, "orders", {"id": 7}) == {"id": 7, "paid": 0, "version": 1}
        connection.commit()
        with pytest.raises(Misconfigured, match="no transaction"):
            fence.claim("orders/7", 34)


@pytest.mark.parametrize("library", ["pymysql", "sqlalchemy"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_52_a_snapshot_older_than_the_last_claim_is_refused(shop: Shop, library: str, known: bool) -> None:
    """100 + 1 + 1 = 101: the claim went through, and the read behind it was of before."""
    with connected(library, shop) as before, connected(library, shop) as after:
        if known:  # also where the holder before us claims with the token that it had: its mark does not change
            Fence(before).claim("orders/7", 33)
            before.commit()
        assert ask(after, "SELECT paid FROM orders WHERE id = 7") == (0,)
        Fence(before).claim("orders/7", 33)
        ask(before, "UPDATE orders SET paid = 100 WHERE id = 7")
        before.commit()
        for _ in range(2):
            with pytest.raises(Misconfigured, match="claim or lock first"):
                Fence(after).claim("orders/7", 34)
        with pytest.raises(FenceRejected):
            Fence(after).claim("orders/7", 32)  # and a stale holder is told that it is one
        after.rollback()
        Fence(after).claim("orders/7", 34)
        Fence(after).claim("orders/7", 34)
        assert ask(after, "SELECT paid FROM orders WHERE id = 7") == (100,)


def test_52_a_consistent_snapshot_is_a_read(shop: Shop) -> None:
    with connected("pymysql", shop) as before, connected("pymysql", shop) as after:
        ask(after, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        Fence(before).claim("orders/7", 33)
        before.commit()
        with pytest.raises(Misconfigured, match="claim or lock first"):
            Fence(after).claim("orders/7", 34)


def test_52_a_server_that_finds_old_snapshots_itself_is_understood(shop: Shop) -> None:
    with connected("pymysql", shop) as before, connected("pymysql", shop) as after:
        Fence(before).claim("orders/7", 33)
        before.commit()
        ask(after, "SET innodb_snapshot_isolation = ON")
        ask(after, "SELECT paid FROM orders")
        Fence(before).claim("orders/7", 34)
        before.commit()
        with pytest.raises(Misconfigured, match="claim or lock first"):
            Fence(after).claim("orders/7", 35)


def test_a_read_before_the_claim_is_covered_if_nobody_claimed_since(shop: Shop) -> None:
    with connected("pymysql", shop) as connection:
        ask(connection, "SELECT paid FROM orders")
        Fence(connection).claim("orders/7", 33)
        Fence(connection).claim("orders/8", 12)
        connection.commit()
        ask(connection, "SELECT paid FROM orders")
        Fence(connection).claim("orders/7", 34)


def test_read_committed_needs_no_new_transaction(shop: Shop) -> None:
    with connected("pymysql", shop) as before, connected("pymysql", shop) as after:
        ask(after, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        ask(after, "SELECT paid FROM orders WHERE id = 7")
        Fence(before).claim("orders/7", 33)
        ask(before, "UPDATE orders SET paid = 100 WHERE id = 7")
        before.commit()
        Fence(after).claim("orders/7", 34)
        assert ask(after, "SELECT paid FROM orders WHERE id = 7") == (100,)


@pytest.mark.parametrize("library", ["pymysql", "sqlalchemy"])
def test_a_part_of_a_second_is_waited_for(shop: Shop, library: str) -> None:
    with connected(library, shop) as first, connected(library, shop) as second:
        lock_row(first, "orders", {"id": 7})
        for timeout, least in ((0.4, 0.35), (0, 0.0)):
            began = time.monotonic()
            with pytest.raises(NotAcquired):
                lock_row(second, "orders", {"id": 7}, timeout=timeout)
            assert time.monotonic() - began >= least
        first.rollback()
        assert lock_row(second, "orders", {"id": 7}, timeout=0.4) == {"id": 7, "paid": 0, "version": 1}


def test_first_claims_of_different_resources_do_not_get_in_each_other_s_way(shop: Shop) -> None:
    """A lock on the gap where a row will be would end in a deadlock of two who claim at the same time."""
    with connected("pymysql", shop) as one, connected("pymysql", shop) as two:
        for connection in (one, two):
            ask(connection, "SET SESSION innodb_lock_wait_timeout = 3")
        for number in range(5):
            Fence(one).claim(f"orders/{2 * number}", 33)
            Fence(two).claim(f"orders/{2 * number + 1}", 33)
        one.commit()
        two.commit()
