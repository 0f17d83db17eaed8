"""Asynchronous replication: what a primary has changed reaches each replica a while later, in order.

1. A replica lags by its link's `lag_s`. Its acknowledgement takes as long again; WAIT counts acknowledgements.
2. A link that is cut loses what is under way. When it is mended, the replica gets a whole copy, as of that moment.
3. A fail-over makes a primary of a replica with what the replica has: the last writes may be missing. The old primary,
   if it comes back, becomes a replica, refuses writes and takes the new one's copy.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .keyspace import Change
from .protocol import Reply

if TYPE_CHECKING:
    from .server import RedisServer
    from .session import RedisSession

FSYNC_S = 1.0
"""How long a write may take to the disk with `appendfsync everysec`."""


@dataclass(eq=False)
class Link:
    """Between a primary and one of its replicas."""

    primary: RedisServer
    replica: RedisServer
    lag_s: float
    up: bool = False
    partitioned: bool = False
    """Nothing passes, until somebody mends it."""
    acknowledged: int = 0
    _under_way: deque[tuple[int, list[Change]]] = field(default_factory=deque)

    def mend(self) -> None:
        self.partitioned = False
        self.connect()

    def connect(self) -> None:
        """Rule 2."""
        current = self in self.primary.replication.links
        if self.partitioned or not (current and self.primary.running and self.replica.running):
            return
        self.up = True
        self._under_way.clear()
        self.replica.keyspace.restore(self.primary.keyspace.snapshot())
        self._acknowledge(self.primary.replication.offset)

    def cut(self) -> None:
        self.partitioned = True
        self.drop()

    def drop(self) -> None:
        self.up = False
        self._under_way.clear()

    def send(self, offset: int, changes: list[Change]) -> None:
        if self.up:
            self._under_way.append((offset, changes))
            self.replica.host.after(self.lag_s, self._arrive)

    def _arrive(self) -> None:
        if self.up and self.replica.running and self._under_way:
            offset, changes = self._under_way.popleft()
            self.replica.keyspace.apply(changes)
            self.primary.host.after(self.lag_s, lambda: self._acknowledge(offset))

    def _acknowledge(self, offset: int) -> None:
        if self.up:
            self.acknowledged = max(self.acknowledged, offset)
            self.primary.replication.look_at_waiters()


@dataclass(eq=False)
class ReplicaWaiter:
    """A session that has said WAIT or WAITAOF."""

    session: RedisSession
    local: int
    replicas: int
    offset: int
    reply_local: bool


class Replication:
    """One server's part in it."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self.primary: RedisServer | None = None
        self.links: list[Link] = []
        """To its replicas."""
        self.offset = 0
        self.synced = 0
        """Up to where its own disk has it."""
        self._syncing = False
        self._waiters: list[ReplicaWaiter] = []

    def restarted(self) -> None:
        self._waiters.clear()
        self._syncing = False
        own = self._own_link()
        for link in self.links if own is None else [*self.links, own]:
            link.drop()
            self._server.host.after(link.lag_s, link.connect)

    def _own_link(self) -> Link | None:
        links = self.primary.replication.links if self.primary is not None else []
        return next((link for link in links if link.replica is self._server), None)

    @property
    def cut_off(self) -> bool:
        """It is a replica that does not hear its primary."""
        return self.primary is not None and ((link := self._own_link()) is None or not link.up)

    def good_followers(self) -> int:
        return sum(link.up for link in self.links)

    def feed(self, changes: list[Change]) -> int:
        """Send a write to all replicas; answers with its place in the order of all writes."""
        self.offset += 1
        for link in self.links:
            link.send(self.offset, changes)
        settings = self._server.settings
        if settings["appendfsync"] == "always":
            self.synced = self.offset
        elif settings["appendonly"] == "yes" and not self._syncing:
            self._syncing = True
            self._server.host.after(FSYNC_S, self._sync)
        return self.offset

    def _sync(self) -> None:
        self._syncing = False
        self.synced = self.offset
        self.look_at_waiters()

    # WAIT

    def confirmed(self, waiter: ReplicaWaiter) -> tuple[int, int]:
        local = int(self.synced >= waiter.offset and self._server.settings["appendonly"] == "yes")
        return local, sum(link.up and link.acknowledged >= waiter.offset for link in self.links)

    def wait(self, waiter: ReplicaWaiter, timeout_ms: int) -> bool:
        """False if there is nothing to wait for. It is told otherwise, once it is confirmed or its time is over."""
        local, replicas = self.confirmed(waiter)
        if local >= waiter.local and replicas >= waiter.replicas:
            return False
        self._waiters.append(waiter)
        seconds = timeout_ms / 1000 if timeout_ms else 1e9
        waiter.session.wait_for(self._server.host.after(seconds, lambda: self._tell(waiter)))
        return True

    def look_at_waiters(self) -> None:
        for waiter in list(self._waiters):
            local, replicas = self.confirmed(waiter)
            if local >= waiter.local and replicas >= waiter.replicas:
                self._tell(waiter)

    def _tell(self, waiter: ReplicaWaiter) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            waiter.session.go_on(self.reply(waiter))

    def reply(self, waiter: ReplicaWaiter) -> Reply:
        local, replicas = self.confirmed(waiter)
        return [local, replicas] if waiter.reply_local else replicas

    def forget(self, session: RedisSession) -> None:
        self._waiters = [waiter for waiter in self._waiters if waiter.session is not session]


def follow(replica: RedisServer, primary: RedisServer, lag_s: float) -> Link:
    """Let a server be a replica of another one: REPLICAOF."""
    unfollow(replica)
    replica.replication.primary = primary
    link = Link(primary, replica, lag_s)
    primary.replication.links.append(link)
    link.connect()
    return link


def unfollow(replica: RedisServer) -> None:
    """REPLICAOF NO ONE: what it has is what counts now."""
    if (primary := replica.replication.primary) is not None:
        for link in [link for link in primary.replication.links if link.replica is replica]:
            link.drop()
            primary.replication.links.remove(link)
        replica.replication.primary = None


def fail_over(old: RedisServer, new: RedisServer) -> None:
    """Rule 3. Sessions of the old primary are ended, as Sentinel does, if it is there."""
    links = [link for link in old.replication.links if link.replica is not new]
    lag_s = next((link.lag_s for link in old.replication.links if link.replica is new), 0.0)
    unfollow(new)
    for link in links:
        follow(link.replica, new, link.lag_s)
    if old.running:
        old.kill_sessions()
    follow(old, new, lag_s)
