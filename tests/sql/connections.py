"""Connections of every library that the helpers take, each in the middle of a transaction of the user's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

LIBRARIES = ("psycopg", "core", "session")


@contextmanager
def connected(library: str, url: str) -> Iterator[Any]:
    """One PostgreSQL connection; rolled back at the end."""
    if library == "psycopg":
        import psycopg

        with psycopg.connect(url) as connection:
            yield connection
            connection.rollback()
        return
    import sqlalchemy
    from sqlalchemy.orm import Session

    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() if library == "core" else Session(engine) as connection:
            yield connection
            connection.rollback()
    finally:
        engine.dispose()


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        connection.rollback()


def plain(connection: Any, statement: str) -> Any:
    """Something of the user's own, in the same transaction."""
    if type(connection).__module__.startswith("sqlalchemy"):
        from sqlalchemy import text

        return connection.execute(text(statement))
    return connection.execute(statement)
