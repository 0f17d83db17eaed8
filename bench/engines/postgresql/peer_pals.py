"""pals: advisory locks through SQLAlchemy and psycopg2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def locker_of(target: Target) -> Iterator[Any]:
    import sqlalchemy

    pals = import_module("pals")  # it has no types

    engine = sqlalchemy.create_engine(
        target.url.replace("postgresql://", "postgresql+psycopg2://"), pool_size=80, max_overflow=0
    )
    try:
        yield pals.Locker("bench", create_engine_callable=lambda: engine)
    finally:
        engine.dispose()


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    with locker_of(target) as locker:

        def worker_lock() -> WorkerLock:
            lock = locker.lock(name, acquire_timeout=int(TAKE_TIMEOUT_S * 1000))

            def take() -> None:
                if not lock.acquire():
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        yield worker_lock


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with locker_of(target) as locker:

        def body(name: str) -> None:
            lock = locker.lock(name)
            assert lock.acquire()
            lock.release()

        yield body


CONTENDERS = (
    Contender(
        "pals",
        "peer",
        lock_factory=lock_factory,
        named_pair=named_pair,
        imports="import pals",
        counted=True,
        cannot={"leases": "no expiry: nothing to keep"},
    ),
)
