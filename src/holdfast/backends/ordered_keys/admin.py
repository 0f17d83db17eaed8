"""Survey, evict, ask: what others do with a queue. Nobody who waits is woken by a look, but whose turn it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from ..._core.flow import Flow
from ...model import LockView

TRIES_COUNT = 5
"""How often an eviction is tried again because the hold was written to meanwhile."""


class EvictableHold(Protocol):
    """What can be evicted."""

    @property
    def token(self) -> int: ...

    @property
    def live(self) -> bool:
        """Whether its holder is there; False for what keeps a name closed after it."""
        ...


Q = TypeVar("Q")
H = TypeVar("H", bound=EvictableHold)


class QueueStore(Protocol[Q, H]):
    """The queues of an engine, for those who stand in none of them."""

    def read_queues(self, prefix: str, exact: bool, contended: bool) -> Flow[Mapping[str, Q]]:
        """By name, in order; only those where something stands. `exact`, `contended`: as for `ports.Surveys`."""
        ...

    def views(self, queues: Mapping[str, Q], timed: bool) -> Flow[list[LockView]]:
        """`timed`: somebody looks at how long each hold has left."""
        ...

    def holds(self, queue: Q) -> Sequence[H]: ...

    def end_hold(self, name: str, queue: Q, hold: H) -> Flow[bool]:
        """Delete it, with a word for its owner; its delay, if it has one, begins now. False: it has changed."""
        ...

    def request_release(self, name: str, hold: H) -> Flow[bool]:
        """Leave word for its owner, who sees it with its next renewal. False: it is gone."""
        ...


class AdminFlows(Generic[Q, H]):
    """Implements `ports.Surveys`, `ports.Evicts` and `ports.Asks`."""

    def __init__(self, store: QueueStore[Q, H]) -> None:
        self._store = store

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> Flow[list[LockView]]:
        queues = yield from self._store.read_queues(prefix, exact, contended)
        return (yield from self._store.views(queues, timed=not exact and not contended))

    def evict(self, name: str, token: int) -> Flow[bool]:
        for _ in range(TRIES_COUNT):
            queues = yield from self._store.read_queues(name, True, False)
            held = [hold for hold in self._store.holds(queues[name]) if hold.token == token] if name in queues else []
            if not held:
                return False
            if (yield from self._store.end_hold(name, queues[name], held[0])):
                return True
        return False

    def ask(self, name: str, token: int | None) -> Flow[int]:
        queues = yield from self._store.read_queues(name, True, False)
        asked = 0
        for hold in self._store.holds(queues[name]) if name in queues else ():
            if hold.live and (token is None or hold.token == token):
                asked += yield from self._store.request_release(name, hold)
        return asked
