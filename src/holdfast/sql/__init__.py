"""Locks on your own database connection, in your own transaction; for asyncio see `holdfast.sql.aio`.

    advisory_xact(conn, name)                          a named lock until the transaction ends (PostgreSQL)
    lock_row(conn, "orders", {"id": 7}, nowait=True)   the row, locked until the transaction ends; None if there is none
    versioned_update(conn, "orders", {"id": 7}, 3, …)  optimistic: only if nobody else was quicker
    retry(work)                                        do it again, with jitter, when somebody was
    Fence(conn).claim("orders/7", lease)               a stale holder is refused
    Once(conn, "payments", keep="24h").attempt(key)    done once, its result remembered, with your rows or not at all

A connection is one of psycopg 3, SQLAlchemy (Connection or Session, on any of these), PyMySQL or sqlite3. Nothing here
commits or rolls back your transaction; what fails is undone to where it began, and the transaction can be used further.
"""

from __future__ import annotations

from ..errors import Missing, VersionConflict
from .sync.fence import Fence
from .sync.helpers import advisory_xact, lock_row, retry, versioned_update
from .sync.once import TransactionAttempt as Attempt
from .sync.once import TransactionOnce as Once

__all__ = [
    "Attempt",
    "Fence",
    "Missing",
    "Once",
    "VersionConflict",
    "advisory_xact",
    "lock_row",
    "retry",
    "versioned_update",
]
