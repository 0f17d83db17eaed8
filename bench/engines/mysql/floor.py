"""The floor: MariaDB by hand through PyMySQL, with nothing but what the engine needs to be asked.

- Pair: two committed updates of one row, on one connection. Beside it the bare GET_LOCK pair, and one sleeper that is
  roused with KILL QUERY, with one update: the unit of the hand-off.
- Hand-off: `GET_LOCK`, everybody on a connection of its own and waiting in the server's line.
- Leases: one update of all rows in each third of the ttl.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from bench.engines.mysql import ROUSED, USER_LOCK
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

UPDATE = "UPDATE floor SET value = %s WHERE id = 1"


def connect(target: Target) -> Any:
    from holdfast.backends.mysql.address import read_url

    return import_module("pymysql").connect(autocommit=True, **read_url(target.url))


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link, link.cursor() as cursor:
        execute = cursor.execute

        def two_updates() -> None:
            execute(UPDATE, (1,))
            execute(UPDATE, (2,))

        yield two_updates


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with connect(target) as link, link.cursor() as cursor:
        execute = cursor.execute
        execute("CREATE TABLE IF NOT EXISTS floor_name (name varbinary(200) PRIMARY KEY) ENGINE = InnoDB")

        def insert_and_delete(name: str) -> None:
            execute("INSERT INTO floor_name VALUES (%s)", (name,))
            execute("DELETE FROM floor_name WHERE name = %s", (name,))

        yield insert_and_delete


@contextmanager
def user_lock_pair(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link, link.cursor() as cursor:
        execute, fetch = cursor.execute, cursor.fetchone

        def lock_and_unlock() -> None:
            execute("SELECT GET_LOCK(%s, 0)", ("bench/pair",))
            fetch()
            execute("SELECT RELEASE_LOCK(%s)", ("bench/pair",))
            fetch()

        yield lock_and_unlock


@contextmanager
def rouse_and_update(target: Target) -> Iterator[Callable[[], object]]:
    error = import_module("pymysql").err.OperationalError
    with connect(target) as link, connect(target) as ears, link.cursor() as cursor, ears.cursor() as sleeper:
        execute = cursor.execute
        asleep, roused = threading.Semaphore(0), threading.Semaphore(0)
        ended = threading.Event()

        def sleep() -> None:
            while not ended.is_set():
                asleep.release()
                try:
                    sleeper.execute("SELECT SLEEP(5) FROM DUAL WHERE 1")
                except error:
                    pass  # roused
                roused.release()

        thread = threading.Thread(target=sleep, daemon=True)
        thread.start()

        def round_trip() -> None:
            asleep.acquire()
            execute(UPDATE, (1,))
            while True:
                execute(f"KILL QUERY {ears.thread_id()}")
                if roused.acquire(timeout=0.05):  # it may not have been asleep yet
                    return

        yield round_trip
        ended.set()
        while thread.is_alive():
            execute(f"KILL QUERY {ears.thread_id()}")
            thread.join(0.05)


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    key = hashlib.sha256(name.encode()).hexdigest()[:32]
    with ExitStack() as stack:

        def worker_lock() -> WorkerLock:
            cursor = stack.enter_context(connect(target)).cursor()

            def take() -> None:
                cursor.execute("SELECT GET_LOCK(%s, %s)", (key, TAKE_TIMEOUT_S))
                assert cursor.fetchone() == (1,)

            def release() -> None:
                cursor.execute("SELECT RELEASE_LOCK(%s)", (key,))
                cursor.fetchone()

            return WorkerLock(take=take, release=release)

        yield worker_lock


class Rows:
    """Rows with an expiry, renewed all at once by one thread."""

    def __init__(self, link: Any) -> None:
        self._cursor = link.cursor()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, count: int, ttl: float) -> None:
        self._cursor.execute("UPDATE floor SET value = %s WHERE id <= %s", (time.time_ns(), count))
        self._thread = threading.Thread(target=self._renew, args=(count, ttl), daemon=True)
        self._thread.start()

    def _renew(self, count: int, ttl: float) -> None:
        while not self._ended.wait(ttl / 3):
            self._cursor.execute("UPDATE floor SET value = %s WHERE id <= %s", (time.time_ns(), count))

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
        "bare MariaDB",
        "floor",
        lock_factory=lock_factory,
        pair=pair,
        named_pair=named_pair,
        lease_set=lease_set,
        counted=True,
    ),
    Contender(USER_LOCK, "bare", pair=user_lock_pair),
    Contender(ROUSED, "bare", pair=rouse_and_update),
)
