"""PostgreSQL as a house of `tests/relational`."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from holdfast.backends.postgresql.address import read_url
from holdfast.backends.postgresql.codec import Codec
from holdfast.backends.postgresql.connector import PostgreSQLConnector
from holdfast.backends.postgresql.session.codec import SessionCodec
from holdfast.backends.postgresql.transport import start_libpq
from tests.postgresql.server import Server, running
from tests.relational.blocking import BlockingConnector

HOLDER = """SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = {}"""
_numbers = itertools.count(1)


def connector(url: str, timeout: float = 5.0) -> BlockingConnector:
    """Makes connections that take the orders of the lock table."""
    return BlockingConnector(lambda words: PostgreSQLConnector(read_url(url), timeout, start_libpq, words))


@dataclass(slots=True)
class PostgreSQL:
    server: Server
    scheme: str = "postgresql"

    def new_url(self) -> str:
        name = f"house{next(_numbers)}"
        self.server.execute(f"CREATE DATABASE {name}")
        return self.server.url(name)

    def holder(self, url: str, name: str) -> int | None:
        lock = SessionCodec("holdfast", "host", 1).lock(name).decode()
        found = self.execute(url, HOLDER.format(lock))
        return found[0][0] if found else None

    def sessions(self, url: str) -> list[int]:
        words = "datname = current_database() AND application_name = 'holdfast'"
        return [row[0] for row in self.execute(url, f"SELECT pid FROM pg_stat_activity WHERE {words}")]

    def end_session(self, session: int) -> None:
        self.server.execute(f"SELECT pg_terminate_backend({session})")

    def execute(self, url: str, statement: str) -> list[tuple[Any, ...]]:
        return self.server.execute(statement, database=url.rpartition("/")[2])

    @contextmanager
    def locking(self, url: str, statement: str) -> Iterator[None]:
        with psycopg.connect(url) as connection:
            connection.execute(statement)
            yield
            connection.rollback()

    def forget_sessions(self, url: str) -> None:
        """Commits that were not flushed are gone, and tables that are not logged are empty."""
        self.execute(url, "DELETE FROM holdfast_session")
        self.execute(url, "TRUNCATE holdfast_session_floor, holdfast_session_waiter")

    def dialling(self, url: str) -> BlockingConnector:
        return connector(url, 30.0)

    def codec(self, namespace: str) -> Codec:
        return Codec(namespace, "host", 1)

    def stop(self, how: signal.Signals) -> None:
        self.server.stop(how)

    def start(self) -> None:
        self.server.start()


@contextmanager
def postgresql(durable: bool = False) -> Iterator[PostgreSQL]:
    """`durable`: it flushes what it commits."""
    with running(fsync="on" if durable else "off") as server:
        yield PostgreSQL(server)
