"""`once`, `log.append` and actors beside statements of sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from bench.engines.sqlite.floor import connect
from bench.measures.sql_tools import Dialect
from bench.measures.sql_tools import figures as sql_figures
from bench.model import Target
from bench.outcomes import Figure

CONTENDERS = ()
DIALECT = Dialect(
    (
        "CREATE TABLE hand_once (name TEXT PRIMARY KEY, result TEXT) WITHOUT ROWID",
        "CREATE TABLE hand_event (stream TEXT, version INTEGER, body TEXT, PRIMARY KEY (stream, version))",
        "CREATE TABLE hand_message (id INTEGER PRIMARY KEY, name TEXT, body TEXT)",
        "CREATE TABLE hand_state (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID",
        "INSERT INTO hand_state VALUES ('account', 0)",
    ),
    "INSERT INTO hand_once (name) VALUES (?) ON CONFLICT DO NOTHING",
    "?",
)


def figures(target: Target, quick: bool) -> list[Figure]:
    with (
        closing(connect(target.folder / "tools.db")) as link,
        closing(sqlite3.connect(target.folder / "user.db")) as user,
    ):
        user.execute("PRAGMA journal_mode = WAL")
        user.execute("PRAGMA synchronous = NORMAL")
        cursor = link.cursor()

        def execute(statement: str, values: Sequence[object] = ()) -> None:
            cursor.execute(statement.replace("BEGIN", "BEGIN IMMEDIATE") if statement == "BEGIN" else statement, values)

        return sql_figures(target, DIALECT, execute, cursor.fetchone, user, quick)
