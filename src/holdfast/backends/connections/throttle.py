"""So many requests of one kind are under way at a time: others, which cannot wait, find a connection beside them.

1. Who comes to wait for a lock has time, and thousands may come at once. Who holds one does not: its renewal, its
   release. So the first kind is admitted in the order of coming, a few at a time.
2. To wait for admission is not to wait for the server. So a request has its own time-out from when it is sent; before
   that it has as long as its caller has, unless nobody is answered for as long as such a time-out.
3. Who is interrupted (a signal that raises) may lose its turn: one that nobody has any more does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakSet

from ..._core.flow import NEW_EVENT, NOW, Flow, WaitDial, WakeEvent
from ...errors import BackendUnavailable

R = TypeVar("R")


class _Turn:
    __slots__ = ("__weakref__", "admitted", "event")

    def __init__(self) -> None:
        self.admitted = False
        self.event: WakeEvent | None = None


class Throttle:
    """Admits `limit` requests at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: WeakSet[_Turn] = WeakSet()
        self._waiting: dict[_Turn, None] = {}
        self._answered_count = 0

    def run(self, send: Callable[[float], Flow[R]], timeout_s: float, deadline: float) -> Flow[R]:
        """`send` is given the deadline of the request."""
        turn = _Turn()
        try:
            if self._waiting or len(self._admitted) >= self._limit:
                yield from self._wait(turn, timeout_s, deadline)
            else:
                self._admit(turn)
            now: float = yield NOW
            answer = yield from send(min(deadline, now + timeout_s))
            self._answered_count += 1
            return answer
        finally:
            self._waiting.pop(turn, None)
            self._admitted.discard(turn)
            self._admit_next()

    def _admit(self, turn: _Turn) -> None:
        turn.admitted = True
        self._admitted.add(turn)
        if turn.event is not None:
            turn.event.set()

    def _admit_next(self) -> None:
        while self._waiting and len(self._admitted) < self._limit:
            turn = next(iter(self._waiting))
            del self._waiting[turn]
            self._admit(turn)

    def _wait(self, turn: _Turn, timeout_s: float, deadline: float) -> Flow[None]:
        event: WakeEvent = yield NEW_EVENT
        turn.event = event
        self._waiting[turn] = None
        self._admit_next()  # a turn may have come free meanwhile
        while not turn.admitted:
            now: float = yield NOW
            answered_count = self._answered_count
            if now >= deadline or turn.admitted:
                break
            yield WaitDial(event, min(deadline - now, timeout_s))
            if not turn.admitted and self._answered_count == answered_count:
                break
        if not turn.admitted:
            raise BackendUnavailable("none of those who asked before was answered in the time of a request")
