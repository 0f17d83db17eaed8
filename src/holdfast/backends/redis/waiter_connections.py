"""Waiters on connections of their own: which connection listens for whom."""

from __future__ import annotations

from ..._core.flow import Flow
from ..queue_backend import Push
from .connection import RedisConnection
from .pool import RedisPool

MOST_COUNT = 64
"""So many waiters have connections of their own; more share one (`notifications`)."""
MOST_PUSHED_COUNT = 1024


class WaiterConnections:
    """The connections of one client that wait for a push."""

    def __init__(self, pool: RedisPool) -> None:
        self._pool = pool
        self.by_owner: dict[str, RedisConnection] = {}
        """Which one listens for an owner that waits, or is about to."""
        self._receiving: set[str] = set()
        self.pushed: set[str] = set()
        """Who was granted by a push: most likely others wait, too."""

    def add(self, owner: str, link: RedisConnection) -> None:
        """From now on it is this connection that listens; an owner that asks again may have another one."""
        self.forget(owner)
        self._pool.lend(link)
        self.by_owner[owner] = link

    def forget(self, owner: str) -> None:
        """This owner waits no longer."""
        if (link := self.by_owner.pop(owner, None)) is not None:
            if owner in self._receiving:
                link.close()  # whoever receives on it is told
            else:
                self._pool.take_back(link)

    def wait(self, owner: str, link: RedisConnection, deadline: float) -> Flow[Push | None]:
        self._receiving.add(owner)
        try:
            push = yield from link.await_push(owner, deadline)
        except BaseException as error:
            self._receiving.discard(owner)
            if self.by_owner.get(owner) is link:
                del self.by_owner[owner]
            link.close()
            if isinstance(error, OSError):
                return None  # to ask again finds out more
            raise
        self._receiving.discard(owner)
        if self.by_owner.get(owner) is link:
            del self.by_owner[owner]
            self._pool.take_back(link)
        if push is None:
            return None
        if len(self.pushed) >= MOST_PUSHED_COUNT:
            self.pushed.clear()  # leases that nobody released, mostly
        self.pushed.add(owner)
        return push
