"""The helpers for asyncio connections: psycopg's AsyncConnection, SQLAlchemy's AsyncConnection and AsyncSession, and
those of asyncmy and aiosqlite."""

from __future__ import annotations

from ...errors import Missing, VersionConflict
from .fence import Fence
from .helpers import advisory_xact, lock_row, retry, versioned_update
from .once import TransactionAttempt as Attempt
from .once import TransactionOnce as Once

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
