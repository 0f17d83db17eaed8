"""Locks that belong to a session: PostgreSQL's advisory locks, MariaDB's user locks.

1. A session may take a lock that it holds once more; it is free when it was let go of as often.
2. Who waits is served in the order of arrival, and gets the lock in the moment in which it becomes free: nobody who
   only tries comes in between.
3. The end of a session lets go of all that it holds, and takes it out of every queue.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

Key: TypeAlias = Hashable
SessionId: TypeAlias = int


@dataclass(slots=True, eq=False)
class Waiter:
    """A session in the queue of a lock; `granted` is called once, when the lock is its own."""

    session: SessionId
    granted: Callable[[], None]


@dataclass(slots=True)
class Hold:
    """Who has a lock, and how many times."""

    session: SessionId
    count: int


class AdvisoryLocks:
    """All locks of a server."""

    def __init__(self) -> None:
        self._holds: dict[Key, Hold] = {}
        self._queues: dict[Key, list[Waiter]] = {}

    def holder(self, key: Key) -> SessionId | None:
        hold = self._holds.get(key)
        return None if hold is None else hold.session

    def held(self) -> list[Key]:
        return list(self._holds)

    def try_lock(self, key: Key, session: SessionId) -> bool:
        hold = self._holds.setdefault(key, Hold(session, 0))
        if hold.session != session:
            return False
        hold.count += 1
        return True

    def wait(self, key: Key, waiter: Waiter) -> None:
        """Stand in the queue of a lock that another session holds."""
        self._queues.setdefault(key, []).append(waiter)

    def stop_waiting(self, key: Key, waiter: Waiter) -> None:
        queue = self._queues.get(key, [])
        if waiter in queue:
            queue.remove(waiter)
        if not queue:
            self._queues.pop(key, None)

    def unlock(self, key: Key, session: SessionId) -> bool | None:
        """Whether this session held it; None if nobody does."""
        hold = self._holds.get(key)
        if hold is None:
            return None
        if hold.session != session:
            return False
        hold.count -= 1
        if not hold.count:
            self._pass_on(key)
        return True

    def end_session(self, session: SessionId) -> None:
        for key, queue in list(self._queues.items()):
            for waiter in [waiter for waiter in queue if waiter.session == session]:
                self.stop_waiting(key, waiter)
        for key in [key for key, hold in self._holds.items() if hold.session == session]:
            self._pass_on(key)

    def _pass_on(self, key: Key) -> None:
        del self._holds[key]
        if queue := self._queues.get(key):
            waiter = queue[0]
            self.stop_waiting(key, waiter)
            self._holds[key] = Hold(waiter.session, 1)
            waiter.granted()
