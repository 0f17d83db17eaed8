"""pals: advisory locks through SQLAlchemy and psycopg2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import sqlalchemy

    pals = import_module("pals")  # it has no types

    engine = sqlalchemy.create_engine(
        target.url.replace("postgresql://", "postgresql+psycopg2://"), pool_size=80, max_overflow=0
    )
    locker = pals.Locker("bench", create_engine_callable=lambda: engine)

    def worker_lock() -> WorkerLock:
        lock = locker.lock(name, acquire_timeout=int(TAKE_TIMEOUT_S * 1000))

        def take() -> None:
            if not lock.acquire():
                raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

        return WorkerLock(take=take, release=lock.release)

    try:
        yield worker_lock
    finally:
        engine.dispose()


CONTENDERS = (
    Contender(
        "pals",
        "peer",
        lock_factory=lock_factory,
        imports="import pals",
        counted=True,
        cannot={"leases": "no expiry: nothing to keep"},
    ),
)
