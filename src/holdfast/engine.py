"""What an engine is made of, for those who write one (docs/add-an-engine.md): what you need not write yourself.

- `QueueBackend` is the algorithm for a server that keeps a queue for each name and runs each request atomically. Its
  requests are `Take`, `Renew`, `Release`, `Survey`, `Evict` and `Allow`; a `Push` is what a waiter is sent.
- `ClientEngine` makes an engine, for threads and for asyncio, of a client that is flows; `ConnectionPool` has the
  connections of such a client; `first` and `gather` run several flows at the same time.
"""

from __future__ import annotations

from .backends.client_engine import ClientEngine
from .backends.connections.gather import first, gather
from .backends.connections.pool import ConnectionPool
from .backends.queue_backend import (
    UNKNOWN,
    Allow,
    Evict,
    Push,
    QueueBackend,
    QueueFlow,
    QueueReply,
    QueueRequest,
    Release,
    Renew,
    Survey,
    Take,
    Taken,
    patience,
)

__all__ = [
    "UNKNOWN",
    "Allow",
    "ClientEngine",
    "ConnectionPool",
    "Evict",
    "Push",
    "QueueBackend",
    "QueueFlow",
    "QueueReply",
    "QueueRequest",
    "Release",
    "Renew",
    "Survey",
    "Take",
    "Taken",
    "first",
    "gather",
    "patience",
]
