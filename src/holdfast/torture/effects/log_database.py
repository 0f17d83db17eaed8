"""The database of a run with a log: the engine's own, or a file beside that of SQLite's locks.

The effects of events go to a table beside the log, in the transaction that acknowledges them. (`redis_log` has none.)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...fenced.mysql.programs import schema as fence_schema
from ...log import RecordedEvent, tail
from ...log.programs import schema_statements

NUMBERS = {
    "sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "postgresql": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "mysql": "BIGINT AUTO_INCREMENT PRIMARY KEY",
}
EFFECTS = "CREATE TABLE torture_effect (number {}, part INT NOT NULL, event VARCHAR(200) NOT NULL, token BIGINT)"
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class LogDatabase:
    """Where a log is, by the URL of the engine and the folder of the run."""

    url: str
    folder: Path

    @property
    def dialect(self) -> str:
        return urlsplit(self.url).scheme

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its client library raises when a connection or a server is gone, or a transaction was ended."""
        if self.dialect == "sqlite":
            return (sqlite3.Error,)
        module = import_module("psycopg" if self.dialect == "postgresql" else "pymysql")
        return (module.Error, OSError)

    def connect(self) -> Any:
        """A connection that begins a transaction by itself."""
        if self.dialect == "sqlite":
            return sqlite3.connect(self.folder / "log.db", timeout=TIMEOUT_S)
        if self.dialect == "postgresql":
            return import_module("psycopg").connect(self.url, connect_timeout=int(TIMEOUT_S))
        address = urlsplit(self.url)
        return import_module("pymysql").connect(
            host=address.hostname, port=address.port, user=address.username, database=address.path[1:],
            connect_timeout=int(TIMEOUT_S),
        )  # fmt: skip

    def create(self) -> None:
        """Make all tables."""
        with closing(self.connect()) as connection:
            if self.dialect == "sqlite":
                execute(connection, "PRAGMA journal_mode = WAL")
            elif self.dialect == "mysql":
                for statement in (*schema_statements("mysql"), fence_schema()):
                    execute(connection, statement)
            execute(connection, EFFECTS.format(NUMBERS[self.dialect]))
            tail(connection)  # where the log makes its tables by itself
            connection.commit()

    def left_to_do(self, part: int, events: Sequence[RecordedEvent], token: int) -> list[RecordedEvent]:
        """All: what has been done was acknowledged with it."""
        return list(events)

    def put_effects(self, connection: Any, part: int, events: Sequence[RecordedEvent], token: int) -> None:
        mark = "?" if self.dialect == "sqlite" else "%s"
        into = f"INSERT INTO torture_effect (part, event, token) VALUES ({mark}, {mark}, {mark})"
        for event in events:
            execute(connection, into, (part, event.id, token))

    def effects(self, connection: Any) -> dict[int, list[tuple[str, int]]]:
        """By partition the effects (event, token), in their order."""
        return effects_by_part(connection)


def effects_by_part(connection: Any) -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = {}
    for part, event, token in execute(connection, "SELECT part, event, token FROM torture_effect ORDER BY number"):
        found.setdefault(part, []).append((event, token))
    return found


def execute(connection: Any, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []
