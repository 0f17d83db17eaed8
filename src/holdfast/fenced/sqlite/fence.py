"""The fence for rows of an SQLite database, in the user's own transaction.

1. The claim is the first statement of the transaction. SQLite lets one writer in at a time, so a claim that
   got through holds the write lock: nobody can claim, or write anything, until this transaction ends. All
   that it reads and writes is covered by the one claim.
2. The mark is written in the transaction of the rows, and stands or falls with it.
3. Work that spans several transactions claims in each of them; a holder that became stale between two is
   refused at the second.
4. A transaction that read first and claims later is safe as well, or refused: SQLite lets it write only if
   nothing was committed since its read. What was read *before* the transaction is not covered.
5. A refused claim changes nothing. A transaction that it opened itself is rolled back; one of the user's
   stays open with all its work (and with SQLite's write lock: end it soon).
6. `transaction` leaves a savepoint in its transaction as a witness: if it is gone at the end, the body has
   ended the transaction by itself, and what came after was not covered.
7. A refusal is kept beside the database, in `<path>.fence.refusals`: in it, it would be rolled back with the user's
   transaction, or wait for it. Of a database in memory none is kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..._core.pickling import unpicklable
from ...errors import Misconfigured
from ...model import check_name
from ..clients import FENCE_ELSEWHERE
from ..holder import Holder, token_of
from ..refusal import owner_of, refusal_now
from ..refusal_store import keep_beside
from ..rejections import rejected
from .error_mapping import mapped, no_table
from .programs import TABLE, programs

KIND = "sqlite"
_NOTHING: Mapping[str, object] = {}


class SQLiteFence:
    """A fence on a connection of the user's, of whatever isolation level, autocommit mode and row factory.

    >>> import sqlite3
    >>> shop = sqlite3.connect(":memory:", isolation_level=None)
    >>> _ = shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER)")
    >>> _ = shop.execute("INSERT INTO orders VALUES (7, 0)")
    >>> fence = SQLiteFence(shop)
    >>> with fence.transaction("orders/7", 34):                 # a lease, or its token
    ...     (paid,) = shop.execute("SELECT paid FROM orders WHERE id = 7").fetchone()
    ...     _ = shop.execute("UPDATE orders SET paid = ? WHERE id = 7", (paid + 100,))
    >>> with fence.transaction("orders/7", 33):                 # doctest: +ELLIPSIS
    ...     print("never reached")
    Traceback (most recent call last):
    holdfast.errors.FenceRejected: the fence at 'orders/7' refused token 33: token 34 has claimed it since...
    >>> shop.close()
    """

    __slots__ = ("_connection", "_programs")

    def __init__(self, connection: sqlite3.Connection, table: str = TABLE) -> None:
        if not hasattr(type(connection), "in_transaction") or not hasattr(type(connection), "cursor"):
            raise Misconfigured(
                f"SQLiteFence takes a connection as from sqlite3.connect(…), not {type(connection).__qualname__}; "
                "of SQLAlchemy give connection.connection.driver_connection"
            )
        self._connection = connection
        self._programs = programs(table)

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    def claim(self, resource: str, lease: Holder) -> None:
        """Raise the mark of `resource` to the lease's token, or raise `FenceRejected` if it is beyond.

        Begins a transaction (IMMEDIATE) unless one is open; commit it as you always do. May be called for
        several resources in one transaction.

        >>> import sqlite3
        >>> with sqlite3.connect(":memory:") as shop:
        ...     fence = SQLiteFence(shop)
        ...     fence.claim("orders/7", 34)
        ...     fence.claim("stock/3", 12)
        >>> fence.mark("orders/7")
        34
        >>> shop.close()
        """
        check_name(resource, "resource")
        token = token_of(lease)
        opened = False
        try:
            opened = not self._connection.in_transaction
            if opened:
                self._execute("BEGIN IMMEDIATE")
            mark = self._raise(resource, token)
        except BaseException as error:
            self._undo(opened)
            if isinstance(error, sqlite3.Error):
                raise mapped(error, resource) from error
            raise
        if mark != token:
            self._undo(opened)
            if file := self._file():
                keep_beside(KIND, file, resource, refusal_now(token, mark, owner_of(lease)))
            raise rejected(KIND, resource, token, mark)

    @contextmanager
    def transaction(self, resource: str, lease: Holder) -> Iterator[sqlite3.Connection]:
        """A transaction that claims `resource` first; committed at the end, rolled back if the body raises.

        On a connection with `autocommit=False` (Python 3.12) a transaction is always open, and this is the
        one: what is pending in it is committed or rolled back with the rest.
        """
        connection = self._connection
        always_open = getattr(connection, "autocommit", None) is False
        if connection.in_transaction and not always_open:
            raise Misconfigured(
                f"{resource!r} cannot be claimed in a transaction of its own: this connection has one open; "
                "end it first, or call claim() to claim in it"
            )
        try:
            self.claim(resource, lease)
            self._execute("SAVEPOINT holdfast_claimed")
            yield connection
            self._see_witness(resource)
            self._end("COMMIT")
        except BaseException:
            if connection.in_transaction:
                self._end("ROLLBACK")
            raise

    def mark(self, resource: str) -> int | None:
        """The highest token that has claimed `resource`, as this connection sees it; None if none has."""
        try:
            row = self._execute(self._programs.mark, {"resource": resource}).fetchone()
        except sqlite3.Error as error:
            if no_table(error):
                return None
            raise mapped(error, resource) from error
        return None if row is None else int(row[0])

    def _raise(self, resource: str, token: int) -> int | None:
        """The mark after the attempt: the token if it was accepted."""
        values = {"resource": resource, "token": token}
        try:
            self._execute(self._programs.claim, values)
        except sqlite3.OperationalError as error:
            if not no_table(error):
                raise
            # Not remembered: if this transaction is rolled back, the table is gone again.
            self._execute(self._programs.schema)
            self._execute(self._programs.claim, values)
        return self.mark(resource)

    def _file(self) -> str:
        """The path of the database with the fence's table; empty if it is in memory, and ends with this process."""
        rows = self._execute("PRAGMA database_list").fetchall()
        return next((str(file or "") for _, name, file in rows if name.lower() == self._programs.home), "")

    def _undo(self, opened: bool) -> None:
        if opened and self._connection.in_transaction:
            self._execute("ROLLBACK")

    def _see_witness(self, resource: str) -> None:
        try:
            self._execute("RELEASE holdfast_claimed")
        except sqlite3.OperationalError as error:
            raise Misconfigured(
                f"the transaction that claimed {resource!r} was ended inside its `with` block, and what was "
                "done there afterwards was not covered by the claim; leave commit and rollback to the block"
            ) from error

    def _end(self, verb: str) -> None:
        # With autocommit=True commit() does nothing; with autocommit=False it begins the next one too.
        if getattr(self._connection, "autocommit", None) is False:
            self._connection.commit() if verb == "COMMIT" else self._connection.rollback()
        else:
            self._execute(verb)

    def _execute(self, statement: str, values: Mapping[str, object] = _NOTHING) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # the user's may return anything
        return cursor.execute(statement, values)
