"""MariaDB as a house of `tests/relational`."""

from __future__ import annotations

import hashlib
import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import holdfast
from holdfast.backends.mysql.address import read_login
from holdfast.backends.mysql.codec import Codec
from holdfast.backends.mysql.connector import MariaDBConnector
from holdfast.backends.mysql.short_cuts import PREPARED
from holdfast.backends.relational.session_client import SessionClient
from holdfast.clock import now
from tests.mysql.server import Server, connect, serving
from tests.relational.blocking import BlockingConnector

_numbers = itertools.count(1)


def connector(url: str, timeout: float = 5.0) -> BlockingConnector:
    """Makes connections that take the orders of the lock table."""
    return BlockingConnector(lambda words: MariaDBConnector(read_login(url), timeout, PREPARED, words))


def said(locks: holdfast.Coordinator, statement: bytes) -> list[list[bytes | None]]:
    """What the server answers on the connection that a coordinator makes its requests on."""
    wire: Any = locks._wire
    client = wire._client
    connection: Any = client._pool._shared if isinstance(client, SessionClient) else client._connection
    rows: list[list[bytes | None]] = wire._monitor.run(connection.say(statement, now() + 5)).rows
    return rows


@dataclass(slots=True)
class MariaDB:
    server: Server
    scheme: str = "mysql"

    def new_url(self) -> str:
        name = f"house{next(_numbers)}"
        self.server.execute(f"CREATE DATABASE {name}")
        return self.server.url(name)

    def holder(self, url: str, name: str) -> int | None:
        lock = hashlib.sha256(f"holdfast/{name}".encode()).hexdigest()
        found: int | None = self.server.execute(f"SELECT IS_USED_LOCK('{lock}')")[0][0]
        return found

    def sessions(self, url: str) -> list[int]:
        words = f"db = '{url.rpartition('/')[2]}'"
        return [row[0] for row in self.server.execute(f"SELECT id FROM information_schema.processlist WHERE {words}")]

    def end_session(self, session: int) -> None:
        self.server.execute(f"KILL CONNECTION {session}")

    def execute(self, url: str, statement: str) -> list[tuple[Any, ...]]:
        return self.server.execute(statement, url.rpartition("/")[2])

    @contextmanager
    def locking(self, url: str, statement: str) -> Iterator[None]:
        with connect(self.server.port, database=url.rpartition("/")[2]) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            yield
            connection.rollback()

    def forget_sessions(self, url: str) -> None:
        """Tables in memory are empty."""
        for table in ("holdfast_session", "holdfast_session_waiter", "holdfast_session_floor"):
            self.execute(url, f"DELETE FROM {table}")

    def dialling(self, url: str) -> BlockingConnector:
        return connector(url, 30.0)

    def codec(self, namespace: str) -> Codec:
        return Codec(namespace, "host", 1)

    def stop(self, how: signal.Signals) -> None:
        self.server.stop(how)

    def start(self) -> None:
        self.server.start()


@contextmanager
def mariadb(durable: bool = False) -> Iterator[MariaDB]:
    """`durable`: it flushes what it commits."""
    with serving({"innodb-flush-log-at-trx-commit": "1" if durable else "0"}) as server:
        yield MariaDB(server)
