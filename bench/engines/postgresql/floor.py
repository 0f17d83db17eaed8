"""The floor: PostgreSQL by hand through psycopg 3, with nothing but what the engine needs to be asked.

- Pair: two committed updates of one row, prepared, on one connection. Beside it the bare advisory pair, and one
  NOTIFY round trip with one update: the unit of the hand-off.
- Hand-off: `pg_advisory_lock`, everybody on a connection of its own and waiting in the server's line.
- Leases: one update of all rows in each third of the ttl.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from bench.engines.postgresql import ADVISORY, NOTIFY
from bench.model import Contender, Target, WorkerLock

if TYPE_CHECKING:
    import psycopg

UPDATE = "UPDATE floor SET value = %s WHERE id = 1"


def connect(target: Target) -> psycopg.Connection[Any]:
    import psycopg

    return psycopg.connect(target.url, autocommit=True, prepare_threshold=0)


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link:
        execute = link.execute

        def two_updates() -> None:
            execute(UPDATE, (1,))
            execute(UPDATE, (2,))

        yield two_updates


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with connect(target) as link:
        execute = link.execute
        execute("CREATE TABLE IF NOT EXISTS floor_name (name text PRIMARY KEY)")

        def insert_and_delete(name: str) -> None:
            execute("INSERT INTO floor_name VALUES (%s)", (name,))
            execute("DELETE FROM floor_name WHERE name = %s", (name,))

        yield insert_and_delete


@contextmanager
def advisory_pair(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link:
        execute = link.execute

        def lock_and_unlock() -> None:
            execute("SELECT pg_try_advisory_lock(%s)", (77,)).fetchone()
            execute("SELECT pg_advisory_unlock(%s)", (77,)).fetchone()

        yield lock_and_unlock


@contextmanager
def notify_and_update(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link, connect(target) as ears:
        ears.execute("LISTEN floor")
        execute = link.execute

        def round_trip() -> None:
            execute(UPDATE, (1,))
            execute("SELECT pg_notify('floor', %s)", ("owner 1794731075326041",))
            next(ears.notifies(timeout=5, stop_after=1))

        yield round_trip


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    with ExitStack() as stack:

        def worker_lock() -> WorkerLock:
            execute = stack.enter_context(connect(target)).execute
            return WorkerLock(
                take=lambda: execute("SELECT pg_advisory_lock(%s)", (key,)).fetchone(),
                release=lambda: execute("SELECT pg_advisory_unlock(%s)", (key,)).fetchone(),
            )

        yield worker_lock


class Rows:
    """Rows with an expiry, renewed all at once by one thread."""

    def __init__(self, link: psycopg.Connection[Any]) -> None:
        self._link = link
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, count: int, ttl: float) -> None:
        self._link.execute("UPDATE floor SET value = %s WHERE id <= %s", (time.time_ns(), count))
        self._thread = threading.Thread(target=self._renew, args=(count, ttl), daemon=True)
        self._thread.start()

    def _renew(self, count: int, ttl: float) -> None:
        while not self._ended.wait(ttl / 3):
            self._link.execute("UPDATE floor SET value = %s WHERE id <= %s", (time.time_ns(), count))

    def lost(self) -> int:
        return 0

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


@contextmanager
def lease_set(target: Target) -> Iterator[Rows]:
    with connect(target) as link:
        rows = Rows(link)
        try:
            yield rows
        finally:
            rows.end()


CONTENDERS = (
    Contender(
        "bare PostgreSQL",
        "floor",
        lock_factory=lock_factory,
        pair=pair,
        named_pair=named_pair,
        lease_set=lease_set,
        counted=True,
    ),
    Contender(ADVISORY, "bare", pair=advisory_pair),
    Contender(NOTIFY, "bare", pair=notify_and_update),
)
