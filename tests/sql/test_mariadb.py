"""The helpers on MariaDB: PyMySQL's connection, and SQLAlchemy's on top of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from holdfast.errors import FenceRejected, Misconfigured, NotAcquired
from holdfast.fenced.mysql.programs import schema
from holdfast.sql import Fence, Missing, VersionConflict, advisory_xact, lock_row, versioned_update
from tests.mysql.server import Server, connect
from tests.sql.conftest import TABLE

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def port(mariadb_server: Server) -> int:
    return mariadb_server.port


@pytest.fixture
def shop(port: int) -> tuple[int, str]:
    """A database with one order and the fence's table."""
    name = f"shop{next(_numbers)}"
    with closing(connect(port, autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", TABLE, "INSERT INTO orders VALUES (7, 0, 1)"):
            cursor.execute(statement)
        cursor.execute(schema())
    return port, name


@contextmanager
def connected(library: str, shop: tuple[int, str]) -> Iterator[Any]:
    port, name = shop
    if library == "pymysql":
        with closing(connect(port, database=name)) as connection:
            yield connection
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(f"mysql+pymysql://root@127.0.0.1:{port}/{name}")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@pytest.mark.parametrize("library", ["pymysql", "sqlalchemy"])
def test_a_row_is_locked_until_the_transaction_ends(shop: tuple[int, str], library: str) -> None:
    with connected(library, shop) as first, connected(library, shop) as second:
        assert lock_row(first, "orders", {"id": 7}) == {"id": 7, "paid": 0, "version": 1}
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, nowait=True)
        assert lock_row(second, "orders", {"id": 7}, skip_locked=True) is None
        began = time.monotonic()
        with pytest.raises(NotAcquired):
            lock_row(second, "orders", {"id": 7}, timeout=1)
        assert time.monotonic() - began > 0.5
        first.rollback()
        assert lock_row(second, "orders", {"id": 7}, nowait=True) is not None


@pytest.mark.parametrize("library", ["pymysql", "sqlalchemy"])
def test_the_quicker_one_wins(shop: tuple[int, str], library: str) -> None:
    with connected(library, shop) as connection:
        assert versioned_update(connection, "orders", {"id": 7}, 1, {"paid": 5}) == 2
        with pytest.raises(VersionConflict):
            versioned_update(connection, "orders", {"id": 7}, 1, {"paid": 9})
        with pytest.raises(Missing):
            versioned_update(connection, "orders", {"id": 8}, 1, {"paid": 9})


@pytest.mark.parametrize("library", ["pymysql", "sqlalchemy"])
def test_a_stale_holder_is_refused(shop: tuple[int, str], library: str) -> None:
    with connected(library, shop) as newer, connected(library, shop) as stale:
        Fence(newer).claim("orders/7", 34)
        newer.commit()
        with pytest.raises(FenceRejected) as refusal:
            Fence(stale).claim("orders/7", 33)
        assert refusal.value.mark == 34
        stale.rollback()
        Fence(newer).claim("ORDERS/7", 1)  # names are not folded to one case


def test_no_named_lock_ends_with_a_transaction(shop: tuple[int, str]) -> None:
    with connected("pymysql", shop) as connection, pytest.raises(Misconfigured, match="lock_row"):
        advisory_xact(connection, "nightly")
