"""The event log on asyncio connections: psycopg's AsyncConnection, SQLAlchemy's AsyncConnection and AsyncSession, those
of asyncmy and aiosqlite; and on clients of `redis.asyncio`."""

from __future__ import annotations

from ..errors import AlreadyAcknowledged, AppendConflict, EventIdConflict, Truncated
from ..model import ANY, NONE, START, EventData, Expected, Folded, Position, RecordedEvent
from .consumer import Consumer
from .helpers import append, fold, read, tail, truncate, truncate_log
from .relay import Relay

__all__ = [
    "ANY",
    "NONE",
    "START",
    "AlreadyAcknowledged",
    "AppendConflict",
    "Consumer",
    "EventData",
    "EventIdConflict",
    "Expected",
    "Folded",
    "Position",
    "RecordedEvent",
    "Relay",
    "Truncated",
    "append",
    "fold",
    "read",
    "tail",
    "truncate",
    "truncate_log",
]
