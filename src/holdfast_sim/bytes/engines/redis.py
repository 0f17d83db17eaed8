"""Redis: one server, a primary behind sentinels, or a cluster (`redis_deployments`), with or without a password.

What Redis promises decides what the invariants may ask (docs/redis.md):

1. A server that keeps its writes (`appendonly yes`, `appendfsync always`) comes back with all of them. Any other may
   come back with less, or with nothing, and a fail-over may lose the last writes unless all replicas have confirmed
   them (`wait_replicas=`): leases of before are then not checked. Neither are those of before a calendar that jumped
   forward: Redis expires by its wall clock.
2. A key that moves to another node goes on by the calendar of that: its leases end early by as much as that is ahead.
3. A token is never below the calendar of its server. So tokens grow, and a fence loses nothing, also where data is
   lost, unless the server that goes on has a calendar behind one by which tokens were given out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow
from holdfast.backends.redis.engine import RedisEngine, open_engine
from holdfast.ports import Opened

from ...servers.model import Memory
from ...servers.redis.line_value import LineValue
from ...servers.redis.replication import follow, unfollow
from ...servers.redis.server import RedisServer
from ..machine import Listener, SimHost
from .base import SimulatedEngine
from .redis_deployments import Deployment, draw_deployment

if TYPE_CHECKING:
    from ..process import ClientProcess
    from ..world import ByteWorld

PASSWORD = "secret"
LINE_PREFIX = b"holdfast/line/"
CLOCK_ALLOWANCE_RATIO = 1.01
"""Clients measure by clocks of their own."""
LOSABLE_S = 1.0
"""So many seconds of writes at most are lost with `appendfsync everysec`."""
STANDALONE_COMMON = ("file is behind", "programs are forgotten", "connections are killed", "loads", "is busy")


class SimulatedRedis(SimulatedEngine):
    name = "redis"
    ttls = (1.0, 2.0, 3.0)
    remains_s = 6.0
    """The claims of a process that has crashed are granted one after the other, where nobody can tell that it has."""
    after_close_s = 0.2
    survey_steps = 4

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        chance = world.chance
        self._in_step = chance.random() < 0.6
        """All calendars tell the same time, but for their rates."""
        self._highest = 0.0
        """The latest time, by any calendar, at which a server that no longer goes on by it has given out tokens."""
        self._has_lost = False
        self.durable = chance.random() < 0.3
        self.version = chance.choice(("6.2.14", "7.0.15", "7.0.15", "7.2.4"))
        self.password = PASSWORD if chance.random() < 0.4 else ""
        self._protocol = chance.choice((2, 3, 3))
        self.deployment: Deployment = draw_deployment(self)
        self.most_connections = self.deployment.most_connections
        self.most_tasks = self.deployment.most_tasks
        if not self._in_step:
            self.remains_s += 6.0

    def add_host(self, name: str) -> SimHost:
        return self.world.host(name, 0.0 if self._in_step else None)

    def add_server(self, name: str) -> RedisServer:
        """One that keeps data."""
        host = self.add_host(name)
        settings = {"requirepass": self.password}
        if self.durable:
            settings |= {"appendonly": "yes", "appendfsync": "always"}
        server = RedisServer(host, address=(name, 6379), version=self.version, settings=settings)
        self.listen(Listener(host, server))
        return server

    def listener_of(self, server: RedisServer) -> Listener:
        return self.world.network.listeners[server.address[0]]

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        user = f":{self.password}@" if self.password else ""
        url = self.deployment.url(user)
        url += f"{'&' if '?' in url else '?'}protocol={self._protocol}"
        return _engine(url, self.world.profile.request_timeout).open()

    # What is lost

    def lost_writes(self, old: RedisServer, new: RedisServer) -> None:
        """`new` goes on in place of `old`, or is what `old` has come back as: rules 1 and 3."""
        kept = new is not old and self.deployment.confirmed and new.host.calendar() <= old.host.calendar()
        self._forget(not kept, [new])

    def _forget(self, leases: bool, servers: Iterable[RedisServer]) -> None:
        self._has_lost = True
        self.world.invariants.forgotten(leases, tokens=False)
        for server in servers:
            self.goes_on(server)

    def goes_on(self, server: RedisServer) -> None:
        """From now on it gives out tokens, by its calendar where the last one was lost."""
        if self._has_lost and server.host.calendar() <= self._highest:
            self.world.invariants.forgotten(leases=False)

    def goes_on_elsewhere(self, key: bytes, old: RedisServer, new: RedisServer) -> None:
        """Rule 2."""
        ahead_s = new.host.calendar() - old.host.calendar()
        if ahead_s > 0 and key.startswith(LINE_PREFIX):
            self.world.invariants.leases.end_early(
                key.removeprefix(LINE_PREFIX).decode(), ahead_s * CLOCK_ALLOWANCE_RATIO
            )

    def note(self, server: RedisServer) -> None:
        """It may have given out tokens by its calendar, and from now on it does not."""
        self._highest = max(self._highest, server.host.calendar())

    def stop(self, listener: Listener, seconds: float, lost: bool) -> None:
        self._note_all()
        super().stop(listener, seconds, lost)

    def _note_all(self) -> None:
        for server in self.deployment.primaries():
            if server.running:
                self.note(server)

    def jump_calendar(self, listener: Listener) -> None:
        self._note_all()
        super().jump_calendar(listener)
        self.world.invariants.forgotten(tokens=False)  # it may have jumped forward
        for server in self.deployment.primaries():
            self.goes_on(server)

    def wipe(self, seconds: float, backup: bool) -> None:
        """Rule 1. A backup is welcome: what it brings back ends with its ttl, as nobody renews it."""
        if self.durable:
            return
        self._note_all()
        super().wipe(seconds, backup)

    def forgotten(self) -> None:
        self._forget(True, self.deployment.primaries())

    # Faults

    def _for_a_while(
        self, seconds: float, begin: Callable[[RedisServer], None], end: Callable[[RedisServer], None]
    ) -> None:
        servers = self.deployment.servers
        for server in servers:
            begin(server)

        def end_all() -> None:
            for server in servers:
                end(server)

        self.until(seconds, end_all)

    def fill_up(self, seconds: float) -> None:
        self.told("is full", seconds)
        self._for_a_while(
            seconds, lambda server: _set(server, "maxmemory", "1"), lambda server: _set(server, "maxmemory", "0")
        )

    def refuse_writes(self, seconds: float) -> None:
        if self.deployment.can_be_read_only and self.world.chance.random() < 0.5:
            self.told("is read only", seconds)
            [server] = self.deployment.servers
            elsewhere = RedisServer(server.host, address=("nowhere", 6379))
            elsewhere.stop()
            follow(server, elsewhere, 0.0)
            self.until(seconds, lambda: unfollow(server))
        else:
            self.told("has too few replicas", seconds)
            setting = "min-replicas-to-write"
            self._for_a_while(
                seconds, lambda server: _set(server, setting, "9"), lambda server: _set(server, setting, "0")
            )

    def change_password(self, seconds: float) -> None:
        """Connections that are logged in stay so; half the time they are ended, too."""
        self.told("has another password", seconds)
        self.refuses_log_ins(seconds)
        ends = self.world.chance.random() < 0.5

        def begin(server: RedisServer) -> None:
            server.users.require(b"another")
            if ends:
                self.listener_of(server).end_connections()

        self._for_a_while(seconds, begin, lambda server: server.users.require(self.password.encode()))

    def special_fault(self, seconds: float) -> None:
        chance = self.world.chance
        if chance.random() < self.deployment.own_fault_ratio:
            self.deployment.own_fault(seconds)
            return
        server = chance.choice(self.deployment.servers)
        kind = chance.choice(STANDALONE_COMMON)
        if not server.running or (kind == "file is behind" and self.durable):
            return
        self.world.fault(f"server {kind}")
        self.world.trace(server.address[0], "{}, {:.3f} s", kind, seconds)
        if kind == "file is behind":
            server.back_up()
            self.until(min(seconds, LOSABLE_S), lambda: self._restart(server))
        elif kind == "programs are forgotten":
            server.scripts.clear()
        elif kind == "connections are killed":
            self.listener_of(server).end_connections(chance)
        elif kind == "loads":
            server.loading = True
            self.until(seconds, lambda: setattr(server, "loading", False))
        else:
            server.busy = True
            self.until(seconds, lambda: setattr(server, "busy", False))

    def _restart(self, server: RedisServer) -> None:
        """It comes back at once, with what had reached its file."""
        listener = self.listener_of(server)
        if listener.up:
            self._note_all()
            listener.stop()
            self.start(listener, Memory.BACKUP)
            if not server.is_replica:
                self.lost_writes(server, server)

    def end_faults(self) -> None:
        super().end_faults()
        self.deployment.end_faults()

    # What may be left

    def leftovers(self) -> list[str]:
        return [
            f"{place.owner} at {key.decode()}"
            for server in self.deployment.primaries()
            for (_, key), entry in server.keyspace.entries.items()
            if isinstance(entry.value, LineValue)
            for place in entry.value.places
            if place.counts(server.now_us()) and not place.gone(server.now_us())
        ]

    def growth(self) -> dict[str, tuple[int, int]]:
        running = sum(not process.crashed for process in self.world.processes)
        sessions = sum(listener.session_count for listener in self.listeners)
        return {"connections": (sessions, self.most_connections * running)}


@lru_cache(1024)
def _engine(url: str, request_timeout: float) -> RedisEngine:
    """It keeps no state, and redis-py takes a while to read a URL."""
    return open_engine(url, "holdfast", request_timeout)


def _set(server: RedisServer, name: str, value: str) -> None:
    server.settings[name] = value
