"""`once`, `log.append` and actors beside statements of sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from bench import holdfast_tools
from bench.engines.sqlite.floor import connect
from bench.measures.sql_tools import Dialect, SqlSession, by_hand
from bench.model import Target

CONTENDERS = ()


@contextmanager
def session(target: Target) -> Iterator[SqlSession]:
    with closing(connect(target.folder / "tools.db")) as link:
        cursor = link.cursor()

        def execute(statement: str, values: Sequence[object] = ()) -> None:
            cursor.execute("BEGIN IMMEDIATE" if statement == "BEGIN" else statement, values)

        yield SqlSession(execute, cursor.fetchone)


@contextmanager
def user_connection(target: Target) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(target.folder / "user.db")) as user:
        user.execute("PRAGMA journal_mode = WAL")
        user.execute("PRAGMA synchronous = NORMAL")
        yield user


DIALECT = Dialect(
    (
        "CREATE TABLE IF NOT EXISTS hand_once (name TEXT PRIMARY KEY, result TEXT) WITHOUT ROWID",
        (
            "CREATE TABLE IF NOT EXISTS hand_event "
            "(stream TEXT, version INTEGER, body TEXT, PRIMARY KEY (stream, version))"
        ),
        "CREATE TABLE IF NOT EXISTS hand_message (id INTEGER PRIMARY KEY, name TEXT, body TEXT)",
        "CREATE TABLE IF NOT EXISTS hand_state (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID",
        "INSERT OR IGNORE INTO hand_state VALUES ('account', 0)",
    ),
    "INSERT INTO hand_once (name) VALUES (?) ON CONFLICT DO NOTHING",
    "?",
    session,
)
TOOLS = (*by_hand(DIALECT), *holdfast_tools.ONCE, holdfast_tools.append(user_connection), holdfast_tools.TELL)
