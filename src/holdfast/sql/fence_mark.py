"""The mark of a fence, raised in the user's transaction: statements for PostgreSQL and MariaDB (see `statements`)."""

from __future__ import annotations

from ..errors import Misconfigured
from ..fenced.postgresql.programs import schema
from .error_mapping import StaleSnapshot, no_transaction, stale
from .statements import MYSQL_OPEN, Exchange, Statement

TABLE = "holdfast_fence"
CREATE_LOCK_KEY = 7161100441930145106
"""The advisory lock of whoever creates the table: two at once would collide."""


def raise_mark(dialect: str, resource: str, token: int) -> Exchange[int]:
    """Raise the mark to the token, unless it is beyond. Gives the mark that stands then."""
    if dialect == "sqlite":
        raise Misconfigured("give the fence sqlite3's own connection (connection.connection.driver_connection)")
    return (yield from (_raise_on_mysql if dialect == "mysql" else _raise_on_postgresql)(resource, token))


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
