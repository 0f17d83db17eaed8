"""An event log on your own database connection, in your own transaction, or in Redis; asyncio: `holdfast.log.aio`.

    append(conn, "order-7", [EventData("paid", {"amount": 5})], expected=3)   only if nobody else was quicker
    read(conn, "order-7", after=3)                    the events of a stream
    fold(conn, "order-7", function, initial)          what they come to, with snapshots if you like
    tail(conn, after=position)                        the events of all streams, in one order, without gaps
    Consumer(conn, "billing", lease=lease).poll()     what is behind a cursor that one member at a time moves
    Relay(connect, publish, lock=lock).run(stop)      publish everything elsewhere, at least once, in order per stream
    truncate(conn, "order-7", before=100)             remove old ones, in small steps

A connection is one of psycopg 3, SQLAlchemy (Connection or Session, on any of these), PyMySQL or sqlite3. Nothing here
commits your transaction: events stand or fall with your rows. Or it is a client of redis-py: then each call is a step
of its own.

>>> import sqlite3
>>> shop = sqlite3.connect(":memory:")
>>> append(shop, "order-7", [EventData("placed", {"total": 5}), EventData("paid", {"total": 5})], expected=NONE)
2
>>> shop.commit()
>>> fold(shop, "order-7", lambda seen, event: [*seen, event.type], [])
Folded(state=['placed', 'paid'], version=2)
>>> append(shop, "order-7", EventData("sent"), expected=1)                          # doctest: +ELLIPSIS
Traceback (most recent call last):
holdfast.log.errors.AppendConflict: stream 'order-7' was expected at version 1, and is at version 2; nothing was ...
>>> consumer = Consumer(shop, "billing", lease=34)         # a lease, or its token
>>> events = consumer.poll()
>>> consumer.acknowledge(events[-1].position)
>>> shop.commit()
>>> Consumer(shop, "billing", lease=33).poll()                                       # doctest: +ELLIPSIS
Traceback (most recent call last):
holdfast.errors.FenceRejected: the fence at 'log-consumer/billing/0/1' refused token 33: token 34 has claimed it ...
>>> shop.close()
"""

from __future__ import annotations

from .errors import AlreadyAcknowledged, AppendConflict, EventIdConflict, Truncated
from .model import ANY, NONE, START, EventData, Expected, Folded, Position, RecordedEvent
from .sync.consumer import Consumer
from .sync.helpers import append, fold, read, tail, truncate, truncate_log
from .sync.relay import Relay

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
