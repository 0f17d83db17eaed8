"""The fence on the user's own connection: claim before you read, in the transaction of the rows.

1. The claim is the first statement of the transaction. It locks the resource's row in `holdfast_fence` until the
   transaction ends, so a newer holder's claim waits for it, and everything in the transaction is covered. Without a
   transaction (autocommit), or behind a snapshot that is older than the last claim, it would cover nothing, and is
   refused: the server is asked at each claim, whatever the connection was when the fence was made.
2. The mark stands or falls with the transaction. A refused claim changes nothing, and the transaction stays usable.
3. SQLite has a fence of its own (`holdfast.fenced.SQLiteFence`), which this one hands over to.
"""

from __future__ import annotations

from typing import Any

from .._core.pickling import unpicklable
from ..errors import Misconfigured
from ..fenced import SQLiteFence
from ..fenced.clients import FENCE_ELSEWHERE
from ..fenced.holder import Holder, token_of
from ..fenced.postgresql.programs import schema
from ..fenced.refusal import refused
from ..model import check_name
from .speaking import dialect_of, speak
from .statements import MYSQL_OPEN, Say, Stale, Talk, no_transaction, stale

TABLE = "holdfast_fence"
CREATING = 7161100441930145106
"""The advisory lock of whoever creates the table: two at once would collide."""


class Fence:
    """A fence on a connection of psycopg, SQLAlchemy, PyMySQL or sqlite3."""

    __slots__ = ("_connection", "_voice")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._voice = dialect_of(connection)

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    def claim(self, resource: str, lease: Holder) -> None:
        """Raise the mark of `resource` to the lease's token, or raise `FenceRejected` if it is beyond."""
        check_name(resource, "resource")
        token = token_of(lease)
        if self._voice.library == "sqlite3":
            SQLiteFence(self._connection).claim(resource, lease)
            return
        mark = speak(self._connection, raised(self._voice.dialect, resource, token), self._voice)
        if mark != token:
            raise refused(self._voice.dialect, resource, token, mark)


def raised(dialect: str, resource: str, token: int) -> Talk[int]:
    """The mark after the attempt: the token if it was accepted."""
    if dialect == "sqlite":
        raise Misconfigured("give the fence sqlite3's own connection (connection.connection.driver_connection)")
    return (yield from (_raised_mysql if dialect == "mysql" else _raised_postgresql)(resource, token))


def _raised_postgresql(resource: str, token: int) -> Talk[int]:
    """Two statements of one transaction have one transaction id: the claim is not carried out in another (rule 1).

    A snapshot that is older than the last claim (REPEATABLE READ, SERIALIZABLE) fails here by itself: every claim
    writes the row, and PostgreSQL refuses to write a row that was written since (SQLSTATE 40001).
    """
    answer = yield Say(f"SELECT to_regclass('{TABLE}') IS NULL AS missing, txid_current() AS here")
    here = answer.rows[0]["here"]
    if answer.rows[0]["missing"]:
        answer = yield Say(f"SELECT pg_advisory_xact_lock({CREATING}), txid_current() = {{}} AS open", (here,))
        if not answer.rows[0]["open"]:
            raise no_transaction(f"the claim on {resource!r}")
        yield Say(schema())
    # One statement that locks the row whether it raises the mark or not, and tells the mark that stands then.
    answer = yield Say(
        f"INSERT INTO {TABLE} AS f (resource, mark) "
        "SELECT CAST({} AS text), CAST({} AS bigint) WHERE txid_current() = {} "
        "ON CONFLICT (resource) DO UPDATE SET mark = greatest(f.mark, excluded.mark) RETURNING f.mark",
        (resource, token, here),
    )
    if not answer.rows:
        raise no_transaction(f"the claim on {resource!r}")
    return int(answer.rows[0]["mark"])


def _raised_mysql(resource: str, token: int) -> Talk[int]:
    """A plain SELECT under REPEATABLE READ shows the state of the transaction's first one, which may be older than the
    claim. So every claim counts itself in the row: once the row is locked, the count as it is and the count as a plain
    SELECT shows it must be the same, before this claim writes to it."""
    try:
        # Locks the row, or makes it; does not change it. (FOR UPDATE of a missing row would lock the gap, and two
        # that claim new resources in one gap would end in a deadlock.)
        yield Say(
            f"INSERT INTO {TABLE} (resource, mark, claims) SELECT {{}}, {{}}, 0 FROM DUAL WHERE {MYSQL_OPEN} "
            f"ON DUPLICATE KEY UPDATE {TABLE}.mark = {TABLE}.mark",
            (resource, token),
        )
        # The inner SELECT is a plain one: it does not inherit FOR UPDATE.
        answer = yield Say(
            f"SELECT mark, claims = (SELECT claims FROM {TABLE} AS seen WHERE resource = {{}}) AS fresh, "
            f"{MYSQL_OPEN} AS open FROM {TABLE} WHERE resource = {{}} FOR UPDATE",
            (resource, resource),
        )
    except Stale as meant:
        raise stale(repr(resource)) from meant.error
    if not answer.rows or not answer.rows[0]["open"]:
        raise no_transaction(f"the claim on {resource!r}")
    mark = int(answer.rows[0]["mark"])
    if mark > token:
        return mark
    if not answer.rows[0]["fresh"]:
        raise stale(repr(resource))
    yield Say(f"UPDATE {TABLE} SET mark = {{}}, claims = claims + 1 WHERE resource = {{}}", (token, resource))
    return token
