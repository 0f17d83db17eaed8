"""Small real things for tests of other people: leases with the token you want, lost ones, an engine out of reach."""

from __future__ import annotations

from ..aio.coordinator import Coordinator as AioCoordinator
from ..aio.lease import Lease as AioLease
from ..backends import open_engine
from ..backends.memory.engine import MemoryEngine
from ..ports import AnyEngine
from ..sync.coordinator import Coordinator
from ..sync.lease import Lease
from .faults import FaultInjector, FaultyEngine


def memory_engine(url: str = "memory://", request_timeout: float = 5.0) -> AnyEngine:
    """A memory engine of its own."""
    return MemoryEngine(url, request_timeout)


def granted(name: str, token: int, *, ttl: float = 30.0) -> Lease:
    """A real lease with this token, held at an engine of its own.

    >>> lease = granted("orders/7", 42)
    >>> lease.token, lease.state.value
    (42, 'held')
    >>> lose(lease, "evicted")
    >>> lease.state.value, lease.reason
    ('lost', 'evicted')
    """
    return Coordinator(_minting(token), ttl, 0.0, None).lock(name).acquire()


async def aio_granted(name: str, token: int, *, ttl: float = 30.0) -> AioLease:
    """The same for asyncio."""
    engine = _minting(token)
    return await AioCoordinator(engine, await engine.async_wire(), ttl, 0.0, None).lock(name).acquire()


def connect_faulty(
    faults: FaultInjector,
    url: str = "memory://",
    *,
    ttl: float = 30.0,
    timeout: float | None = None,
    request_timeout: float = 5.0,
) -> Coordinator:
    """`holdfast.connect`, with faults on the way to the engine, as `faults` says.

    >>> from holdfast import BackendUnavailable
    >>> faults = FaultInjector()
    >>> with connect_faulty(faults) as locks:
    ...     faults.cut()
    ...     try:
    ...         locks.lock("orders/7").try_acquire()
    ...     except BackendUnavailable as error:
    ...         print(error)
    ...     faults.heal()
    ...     locks.lock("orders/7").try_acquire() is not None
    the engine is out of reach (made so by a test)
    True
    """
    engine = FaultyEngine(open_engine(url, "holdfast", request_timeout), faults)
    return Coordinator(engine, ttl, timeout, None)


async def aio_connect_faulty(
    faults: FaultInjector,
    url: str = "memory://",
    *,
    ttl: float = 30.0,
    timeout: float | None = None,
    request_timeout: float = 5.0,
) -> AioCoordinator:
    """The same for asyncio."""
    engine = FaultyEngine(open_engine(url, "holdfast", request_timeout), faults)
    return AioCoordinator(engine, await engine.async_wire(), ttl, timeout, None)


def lose(lease: Lease | AioLease, reason: str = "expired") -> None:
    """End a lease as if the engine had said so: its holder is told, with this reason."""
    lease._hold.lose(reason)


def _minting(token: int) -> AnyEngine:
    """An engine whose first token is this one: tokens are at least the calendar."""
    return MemoryEngine(calendar_us=lambda: token)
