"""The mark of a fence, raised in the user's transaction: statements for each dialect (see `statements`).

A connection of sqlite3 itself is given to `holdfast.fenced.SQLiteFence`; those of aiosqlite and SQLAlchemy come here.
"""

from __future__ import annotations

from functools import cache

from ..fenced.postgresql.programs import schema
from ..fenced.sqlite import programs as sqlite_programs
from ..fenced.sqlite.error_mapping import mapped as mapped_by_sqlite_fence
from .error_mapping import MappedError, MissingTable, NestedTransaction, StaleSnapshot, no_transaction, stale
from .statements import MYSQL_OPEN, Exchange, Statement

TABLE = "holdfast_fence"
CREATE_LOCK_KEY = 7161100441930145106
"""The advisory lock of whoever creates the table: two at once would collide."""


def raise_mark(dialect: str, resource: str, token: int) -> Exchange[int]:
    """Raise the mark to the token, unless it is beyond. Gives the mark that stands then."""
    raise_on = {"postgresql": _raise_on_postgresql, "mysql": _raise_on_mysql, "sqlite": _raise_on_sqlite}[dialect]
    return (yield from raise_on(resource, token))


def _raise_on_postgresql(resource: str, token: int) -> Exchange[int]:
    """Two statements of one transaction have one transaction id: the claim is not carried out in another (rule 1).

    A snapshot that is older than the last claim (REPEATABLE READ, SERIALIZABLE) fails here by itself: every claim
    writes the row, and PostgreSQL refuses to write a row that was written since (SQLSTATE 40001).
    """
    result = yield Statement(f"SELECT to_regclass('{TABLE}') IS NULL AS missing, txid_current() AS here")
    here = result.rows[0]["here"]
    if result.rows[0]["missing"]:
        result = yield Statement(
            f"SELECT pg_advisory_xact_lock({CREATE_LOCK_KEY}), txid_current() = {{}} AS open", (here,)
        )
        if not result.rows[0]["open"]:
            raise no_transaction(f"the claim on {resource!r}")
        yield Statement(schema())
    # One statement that locks the row whether it raises the mark or not, and tells the mark that stands then.
    result = yield Statement(
        f"INSERT INTO {TABLE} AS f (resource, mark) "
        "SELECT CAST({} AS text), CAST({} AS bigint) WHERE txid_current() = {} "
        "ON CONFLICT (resource) DO UPDATE SET mark = greatest(f.mark, excluded.mark) RETURNING f.mark",
        (resource, token, here),
    )
    if not result.rows:
        raise no_transaction(f"the claim on {resource!r}")
    return int(result.rows[0]["mark"])


def _raise_on_mysql(resource: str, token: int) -> Exchange[int]:
    """A plain SELECT under REPEATABLE READ shows the state of the transaction's first one, which may be older than the
    claim. So every claim counts itself in the row: once the row is locked, the count as it is and the count as a plain
    SELECT shows it must be the same, before this claim writes to it."""
    try:
        # Locks the row, or makes it; does not change it. (FOR UPDATE of a missing row would lock the gap, and two
        # that claim new resources in one gap would end in a deadlock.)
        yield Statement(
            f"INSERT INTO {TABLE} (resource, mark, claims) SELECT {{}}, {{}}, 0 FROM DUAL WHERE {MYSQL_OPEN} "
            f"ON DUPLICATE KEY UPDATE {TABLE}.mark = {TABLE}.mark",
            (resource, token),
        )
        # The inner SELECT is a plain one: it does not inherit FOR UPDATE.
        result = yield Statement(
            f"SELECT mark, claims = (SELECT claims FROM {TABLE} AS seen WHERE resource = {{}}) AS fresh, "
            f"{MYSQL_OPEN} AS open FROM {TABLE} WHERE resource = {{}} FOR UPDATE",
            (resource, resource),
        )
    except StaleSnapshot as meant:
        raise stale(repr(resource)) from meant.error
    if not result.rows or not result.rows[0]["open"]:
        raise no_transaction(f"the claim on {resource!r}")
    mark = int(result.rows[0]["mark"])
    if mark > token:
        return mark
    if not result.rows[0]["fresh"]:
        raise stale(repr(resource))
    yield Statement(f"UPDATE {TABLE} SET mark = {{}}, claims = claims + 1 WHERE resource = {{}}", (token, resource))
    return token


def _raise_on_sqlite(resource: str, token: int) -> Exchange[int]:
    """The rules are those of `holdfast.fenced.SQLiteFence`: a transaction that is begun here is undone if it fails."""
    begins = False
    try:
        try:
            yield Statement("BEGIN IMMEDIATE")
            begins = True
        except NestedTransaction:
            pass  # the user's own, which may only have read so far: the claim takes the write lock
        mark = yield from _raise_in_transaction(resource, token)
    except GeneratorExit:
        raise
    except BaseException as error:
        if begins:
            yield from _roll_back()
        cause = error.error if isinstance(error, MappedError) else error
        cause = getattr(cause, "orig", None) or cause  # SQLAlchemy wraps what sqlite3 raised
        if hasattr(cause, "sqlite_errorcode"):
            raise mapped_by_sqlite_fence(cause, resource) from cause  # type: ignore[arg-type]
        raise
    if begins and mark != token:
        yield from _roll_back()
    return mark


def _raise_in_transaction(resource: str, token: int) -> Exchange[int]:
    programs = _programs_of_sqlite()
    claim = Statement(programs.claim, (resource, token))
    try:
        yield claim
    except MissingTable:
        yield Statement(programs.schema)
        yield claim
    result = yield Statement(programs.mark, (resource,))
    return int(result.rows[0]["mark"])


def _roll_back() -> Exchange[None]:
    try:
        yield Statement("ROLLBACK")
    except Exception:  # noqa: BLE001  SQLite has done so by itself: the first error says why
        pass


@cache
def _programs_of_sqlite() -> sqlite_programs.Programs:
    """With the marks of a `Statement`."""
    made = sqlite_programs.programs(TABLE)
    texts = (text.replace(":resource", "{}").replace(":token", "{}") for text in (made.schema, made.claim, made.mark))
    return sqlite_programs.Programs(*texts)
