"""Small real things for other people's tests: leases with the token you want, and how to lose them."""

from __future__ import annotations

from ..aio.coordinator import Coordinator as AioCoordinator
from ..aio.lease import Lease as AioLease
from ..backends.memory.engine import MemoryEngine
from ..ports import AnyEngine
from ..sync.coordinator import Coordinator
from ..sync.lease import Lease


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


def lose(lease: Lease | AioLease, reason: str = "expired") -> None:
    """End a lease as if the engine had said so: its holder is told, with this reason."""
    lease._hold.lose(reason)


def _minting(token: int) -> AnyEngine:
    """An engine whose first token is this one: tokens are at least the calendar."""
    return MemoryEngine(calendar_us=lambda: token)
