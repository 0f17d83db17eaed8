"""holdfast for asyncio: the same names, awaited.

>>> import asyncio, holdfast.aio
>>> async def main() -> bool:
...     async with holdfast.aio.connect("memory://doc") as locks:
...         async with locks.lock("reports/nightly") as lease:   # the body is cancelled if the lease is lost
...             return lease.token > 0
>>> asyncio.run(main())
True
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import NoReturn

from ..errors import Misconfigured
from ..observe.event import Event
from .activation import Actor
from .actor_system import ActorSystem
from .attempt import Attempt
from .coordinator import Coordinator
from .election import Election
from .lease import Lease
from .limiter import Limiter
from .lock import Lock
from .multi import Leases, LockAll
from .once import Once
from .partitions import Partitions
from .recovery import Recovery, RecoveryCase
from .rwlock import RWLock
from .side_thread import on_a_thread

__all__ = [
    "Actor",
    "ActorSystem",
    "Attempt",
    "Coordinator",
    "Election",
    "Lease",
    "Leases",
    "Limiter",
    "Lock",
    "LockAll",
    "Once",
    "Partitions",
    "RWLock",
    "Recovery",
    "RecoveryCase",
    "connect",
]


class connect:
    """Connect to an engine, as `holdfast.connect` does; an async context manager, or awaited for a `Coordinator`."""

    def __init__(
        self,
        url: str | object | None = None,
        *,
        namespace: str = "holdfast",
        ttl: float = 30.0,
        timeout: float | None = None,
        require: Iterable[str] = (),
        request_timeout: float = 5.0,
        on_event: Callable[[Event], None] | None = None,
        family: Callable[[str], str] | None = None,
    ) -> None:
        from ..settings import Settings

        self._settings = Settings(url, namespace, ttl, timeout, require, request_timeout, on_event, family)
        self._defaults = (ttl, timeout, on_event, family)
        self._coordinator: Coordinator | None = None

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(Coordinator, name):
            raise Misconfigured(
                f"{name!r} is of a coordinator, and holdfast.aio.connect() is not one yet: write "
                "`async with holdfast.aio.connect(…) as locks:`, or `locks = await holdfast.aio.connect(…)`"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def _open(self) -> Coordinator:
        engine = await on_a_thread(self._settings.engine)
        wire = await engine.async_wire()
        try:
            self._settings.demand(engine.backend)
        except BaseException:
            await wire.close()
            raise
        return Coordinator(engine, wire, *self._defaults)

    def __await__(self) -> Generator[object, None, Coordinator]:
        return self._open().__await__()

    async def __aenter__(self) -> Coordinator:
        self._coordinator = await self._open()
        return self._coordinator

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._coordinator is not None
        await self._coordinator.close()
