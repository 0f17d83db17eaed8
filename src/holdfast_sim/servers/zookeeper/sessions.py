"""The leader's list of sessions: when each expires, and through which server it was heard last.

1. A session expires when it was not heard of for its timeout, rounded up to the next tick. A new leader knows no better
   than to give every session its whole timeout again.
2. A session belongs to the server that its client is connected to. What comes by way of another is refused: it has
   moved.
"""

from __future__ import annotations

from collections.abc import Iterable

from .records import Code, Refused


class Sessions:
    """`now_ms` is the leader's clock whenever it is asked for."""

    def __init__(self, tick_ms: int, known: Iterable[tuple[int, int]], now_ms: int) -> None:
        self._tick_ms = tick_ms
        self._ends_ms: dict[int, int] = {}
        self._owners: dict[int, object] = {}
        self._closing: set[int] = set()
        for session, timeout_ms in known:
            self.track(session, timeout_ms, now_ms)

    def track(self, session: int, timeout_ms: int, now_ms: int) -> None:
        self._ends_ms[session] = ((now_ms + timeout_ms) // self._tick_ms + 1) * self._tick_ms

    def touch(self, session: int, timeout_ms: int, now_ms: int) -> bool:
        """It was heard of. False if it has ended."""
        if session not in self._ends_ms or session in self._closing:
            return False
        self.track(session, timeout_ms, now_ms)
        return True

    def own(self, session: int, owner: object) -> None:
        self._owners[session] = owner

    def check(self, session: int, owner: object, unknown: int = Code.UNKNOWN_SESSION) -> None:
        """Raises unless it lives, and belongs to this owner."""
        if session not in self._ends_ms:
            raise Refused(unknown)
        if session in self._closing:
            raise Refused(Code.SESSION_EXPIRED)
        if self._owners.setdefault(session, owner) is not owner:
            raise Refused(Code.SESSION_MOVED)

    def close(self, session: int) -> None:
        self._closing.add(session)

    def remove(self, session: int) -> None:
        self._ends_ms.pop(session, None)
        self._owners.pop(session, None)
        self._closing.discard(session)

    def expired(self, now_ms: int) -> list[int]:
        """Those whose time is up, each told once."""
        found = [each for each, end in self._ends_ms.items() if end <= now_ms and each not in self._closing]
        self._closing.update(found)
        return found

    @property
    def next_ms(self) -> int | None:
        """When to ask for `expired`."""
        return min((end for each, end in self._ends_ms.items() if each not in self._closing), default=None)
