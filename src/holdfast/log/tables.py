"""The log's tables, made in the user's transaction where the fence's table is: on PostgreSQL and SQLite.

MariaDB's DDL would end the transaction, so there they are made by hand (`holdfast schema --log mysql`).
"""

from __future__ import annotations

from ..errors import Misconfigured
from ..sql.error_mapping import MissingTable, NestedTransaction, no_transaction
from ..sql.statements import Exchange, Result, Statement
from .programs import schema_statements, statement


def begin(dialect: str, what: str, *, write_lock: bool = True) -> Exchange[int]:
    """Make sure of the tables; on SQLite also of a transaction with the write lock, before anything is read (unless the
    next statement writes anyway). Gives the id of the transaction, on PostgreSQL; on SQLite 1 if it begins here."""
    if dialect == "sqlite":
        return (yield from _begin_on_sqlite(write_lock))
    if dialect != "postgresql":
        return 0
    result = yield statement(dialect, "missing")
    here = int(result.rows[0]["here"])
    if result.rows[0]["missing"]:
        result = yield statement(dialect, "create_lock", here)
        if not result.rows[0]["open"]:
            raise no_transaction(what)
        yield from create(dialect)
    return here


def _begin_on_sqlite(write_lock: bool) -> Exchange[int]:
    begins = 1
    try:
        yield Statement("BEGIN IMMEDIATE")
    except NestedTransaction:
        begins = 0  # the user's own, which may only have read so far: the first write takes the lock
    if write_lock:
        try:
            yield statement("sqlite", "write_lock")
        except MissingTable:
            yield from create("sqlite")
    return begins


def create(dialect: str) -> Exchange[None]:
    for text in schema_statements(dialect):
        yield Statement(text)


def query(dialect: str, name: str, *values: object) -> Exchange[Result]:
    """What a statement reads; nothing, where there is no log yet."""
    if dialect == "postgresql":  # a statement that fails would end the user's transaction
        result = yield statement(dialect, "exists")
        if result.rows[0]["missing"]:
            return Result([], 0)
    try:
        return (yield statement(dialect, name, *values))
    except MissingTable as meant:
        if dialect == "mysql":
            raise no_tables() from meant.error
        return Result([], 0)


def no_tables() -> Misconfigured:
    return Misconfigured(
        "the tables of the log are not in this database, and MariaDB cannot make them within a transaction; "
        "create them with the output of: holdfast schema --log mysql"
    )
