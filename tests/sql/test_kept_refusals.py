"""PostgreSQL and MariaDB keep what their fences refuse, though the user's transaction is rolled back."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import FenceRejected
from holdfast.fenced.mysql.programs import refusal_schema, schema
from holdfast.fenced.refusal import LAST_COUNT, RefusalRecord
from holdfast.refusals import read_refusals
from holdfast.sql import Fence
from holdfast.sql.aio import Fence as AsyncFence
from tests.mysql.server import Server as MariaDBServer
from tests.mysql.server import connect
from tests.postgresql.server import Server
from tests.sql.connections import LIBRARIES, connected, plain
from tests.support.asyncio_connections import open_asyncio


@pytest.fixture(autouse=True)
def no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.fenced.refusal._failures", {})


@pytest.fixture
def maria(mariadb_server: MariaDBServer) -> Iterator[str]:
    """A database with both tables of the fence."""
    name = "kept"
    with closing(connect(mariadb_server.port, autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", schema(), refusal_schema()):
            cursor.execute(statement)
        yield f"mysql://root@127.0.0.1:{mariadb_server.port}/{name}"
        cursor.execute(f"DROP DATABASE {name}")


def facts(record: RefusalRecord) -> list[tuple[int, int | None, str]]:
    return [(each.token, each.mark, each.owner) for each in record.last]


def accept(url: str, resource: str, token: int) -> None:
    with connected("psycopg", url) as newer:
        Fence(newer).claim(resource, token)
        newer.commit()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_refusal_stays_when_the_transaction_is_rolled_back(url: str, library: str) -> None:
    with holdfast.connect("memory://kept") as locks, locks.lock("a") as lease, connected(library, url) as stale:
        mark = lease.token + 1
        accept(url, "orders/7", mark)
        assert read_refusals(url) == []
        plain(stale, "UPDATE orders SET paid = 1 WHERE id = 7")
        for holder in (33, lease):
            with pytest.raises(FenceRejected):
                Fence(stale).claim("orders/7", holder)
        plain(stale, "SELECT 1")  # the transaction is still good
        stale.rollback()
    [kept] = read_refusals(url)
    assert (kept.resource, kept.count) == ("orders/7", 2)
    assert facts(kept) == [(lease.token, mark, lease.owner), (33, mark, "")]


@pytest.mark.parametrize("library", ["psycopg", "core", "session"])
def test_with_asyncio(url: str, library: str) -> None:
    accept(url, "orders/7", 34)

    async def main() -> None:
        async with open_asyncio(library, url) as stale:
            with pytest.raises(FenceRejected):
                await AsyncFence(stale).claim("orders/7", 33)

    asyncio.run(main())
    [kept] = read_refusals(url)
    assert facts(kept) == [(33, 34, "")]


@pytest.mark.parametrize("library", ["aiosqlite", "core"])
def test_with_asyncio_on_sqlite(tmp_path: Path, library: str) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"

    async def main() -> None:
        async with open_asyncio(library, url) as connection:
            await AsyncFence(connection).claim("orders/7", 34)
            await connection.commit()
            with pytest.raises(FenceRejected):
                await AsyncFence(connection).claim("orders/7", 33)

    asyncio.run(main())
    [kept] = read_refusals(f"sqlite://{tmp_path}/shop.db")
    assert facts(kept) == [(33, 34, "")]


def test_the_count_goes_on_and_the_list_stays_short(url: str, maria: str) -> None:
    accept(url, "orders/7", 100)
    with connected("psycopg", url) as stale, closing(pymysql_of(maria)) as maria_stale:
        Fence(maria_stale).claim("orders/7", 100)
        for token in range(1, 13):
            for connection in (stale, maria_stale):
                with pytest.raises(FenceRejected):
                    Fence(connection).claim("orders/7", token)
    for place in (url, maria):
        [kept] = read_refusals(place)
        assert (kept.count, [each.token for each in kept.last]) == (12, list(range(12, 12 - LAST_COUNT, -1)))


def pymysql_of(url: str) -> Any:
    port, _, name = url.rpartition(":")[2].partition("/")
    return connect(int(port), database=name)


@pytest.mark.parametrize("library", ["pymysql", "asyncmy"])
def test_mariadb_keeps_it_in_the_transaction_that_is_rolled_back(maria: str, library: str) -> None:
    with closing(pymysql_of(maria)) as newer:
        Fence(newer).claim("orders/7", 34)
        newer.commit()

    async def main() -> None:
        async with open_asyncio(library, maria) as stale:
            with pytest.raises(FenceRejected):
                await AsyncFence(stale).claim("orders/7", 33)
            await stale.rollback()

    if library == "asyncmy":
        asyncio.run(main())
    else:
        with closing(pymysql_of(maria)) as stale:
            with pytest.raises(FenceRejected):
                Fence(stale).claim("orders/7", 33)
            stale.rollback()
    [kept] = read_refusals(maria)
    assert facts(kept) == [(33, 34, "")]


def test_an_old_schema_of_mariadb_refuses_as_ever(maria: str, caplog: pytest.LogCaptureFixture) -> None:
    with closing(pymysql_of(maria)) as stale, stale.cursor() as cursor:
        cursor.execute("DROP TABLE holdfast_refusal")
        Fence(stale).claim("orders/7", 34)
        for _ in range(2):
            with pytest.raises(FenceRejected):
                Fence(stale).claim("orders/7", 33)
        cursor.execute("SELECT 1")
        assert read_refusals(maria) == []
    assert sum("could not be kept" in message for message in caplog.messages) == 1


def test_a_role_that_may_not_create_tables_is_refused_as_ever(
    server: Server, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    accept(url, "orders/7", 34)
    database = url.rpartition("/")[2].partition("?")[0]
    server.execute("DROP ROLE IF EXISTS guest")
    server.execute("CREATE ROLE guest")
    server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", database=database)
    server.execute("GRANT SELECT, INSERT, UPDATE ON holdfast_fence TO guest", database=database)
    guest = url + ("&" if "?" in url else "?") + "options=-c%20role%3Dguest"
    with connected("psycopg", guest) as stale:
        for _ in range(2):
            with pytest.raises(FenceRejected):
                Fence(stale).claim("orders/7", 33)
        plain(stale, "SELECT 1")
    assert sum("could not be kept" in message for message in caplog.messages) == 1


def test_a_transaction_that_has_the_table_locked_is_refused_all_the_same(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It would wait for itself: the second connection gives up after its bound."""
    accept(url, "orders/7", 34)
    with connected("psycopg", url) as stale:
        with pytest.raises(FenceRejected):
            Fence(stale).claim("orders/7", 33)
        plain(stale, "LOCK TABLE holdfast_refusal IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(FenceRejected):
            Fence(stale).claim("orders/7", 33)
    assert sum("could not be kept" in message for message in caplog.messages) == 1
    [kept] = read_refusals(url)
    assert kept.count == 1


def test_it_is_kept_in_the_schema_of_the_fence(url: str) -> None:
    with connected("psycopg", url) as connection:
        plain(connection, "CREATE SCHEMA shop")
        plain(connection, "SET search_path TO shop")
        Fence(connection).claim("orders/7", 34)
        connection.commit()
        with pytest.raises(FenceRejected):
            Fence(connection).claim("orders/7", 33)
        assert plain(connection, "SELECT count(*) FROM shop.holdfast_refusal").fetchone() == (1,)


ZOMBIE = """
import os, signal, sys
from holdfast.errors import FenceRejected
from holdfast.sql import Fence
url = sys.argv[1]
if url.startswith("postgresql"):
    import psycopg
    connection = psycopg.connect(url)
else:
    import pymysql
    port, _, name = url.rpartition(":")[2].partition("/")
    connection = pymysql.connect(host="127.0.0.1", port=int(port), user="root", database=name)
try:
    Fence(connection).claim("orders/7", 33)
except FenceRejected:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("engine", ["postgresql", "mysql"])
def test_the_refusal_of_a_process_that_is_killed_at_once_is_kept(engine: str, request: pytest.FixtureRequest) -> None:
    place: str = request.getfixturevalue("url" if engine == "postgresql" else "maria")
    if engine == "postgresql":
        accept(place, "orders/7", 34)
    else:
        with closing(pymysql_of(place)) as newer:
            Fence(newer).claim("orders/7", 34)
            newer.commit()
    zombie = subprocess.run([sys.executable, "-c", ZOMBIE, place], timeout=60, check=False)
    assert zombie.returncode == -signal.SIGKILL
    [kept] = read_refusals(place)
    assert facts(kept) == [(33, 34, "")]
