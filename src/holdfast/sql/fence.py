"""The fence on the user's own connection: claim before you read, in the transaction of the rows (DESIGN §7).

1. The claim is the first statement of the transaction. It locks the resource's row in `holdfast_fence` until the
   transaction ends, so a newer holder's claim waits for it, and everything in the transaction is covered.
2. The mark stands or falls with the transaction. A refused claim changes nothing, and the transaction stays usable.
3. SQLite has a fence of its own (`holdfast.fenced.SQLiteFence`), which this one hands over to.
"""

from __future__ import annotations

from typing import Any

from ..errors import Misconfigured
from ..fenced import SQLiteFence
from ..fenced.holder import Holder, token_of
from ..fenced.postgresql.programs import schema
from ..fenced.refusal import refused
from ..model import check_name
from .speaking import dialect_of, speak
from .statements import Say, Talk

TABLE = "holdfast_fence"


class Fence:
    """A fence on a connection of psycopg, SQLAlchemy, PyMySQL or sqlite3."""

    __slots__ = ("_connection", "_voice")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._voice = dialect_of(connection)

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
    if dialect == "mysql":
        yield Say(
            f"INSERT INTO {TABLE} (resource, mark) VALUES ({{}}, {{}}) "
            "ON DUPLICATE KEY UPDATE mark = GREATEST(mark, VALUES(mark))",
            (resource, token),
        )
        answer = yield Say(f"SELECT mark FROM {TABLE} WHERE resource = {{}} FOR UPDATE", (resource,))
        return int(answer.rows[0]["mark"])
    answer = yield Say(f"SELECT to_regclass('{TABLE}') IS NULL AS missing")
    if answer.rows[0]["missing"]:
        yield Say("SELECT pg_advisory_xact_lock(7161100441930145106)")
        yield Say(schema())
    # One statement that locks the row whether it raises the mark or not, and tells the mark that stands then.
    answer = yield Say(
        f"INSERT INTO {TABLE} AS f (resource, mark) VALUES ({{}}, {{}}) "
        "ON CONFLICT (resource) DO UPDATE SET mark = greatest(f.mark, excluded.mark) RETURNING f.mark",
        (resource, token),
    )
    return int(answer.rows[0]["mark"])
