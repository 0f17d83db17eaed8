"""MariaDB: one server, with the lock table (`mysql`) or session locks (`mysql+session`).

1. Its state is on disk: it stops and starts, and never comes back with nothing, or with a backup.
2. Claims of the lock table are over by its calendar, so a jump forward ends leases early (docs/mysql.md). Session locks
   know no clock.
3. A session lock ends with its session, and its holder learns of that at the next renewal. So a lease whose session has
   ended excludes nobody but the other claims of its coordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow
from holdfast._core.lease import Hold
from holdfast.backends.client_engine import ClientEngine
from holdfast.backends.mysql.engine import open_engine as open_table
from holdfast.backends.mysql.programs import VERSION
from holdfast.backends.mysql.session.engine import open_engine as open_session
from holdfast.backends.session_backend import HASTE
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.ports import Opened

from ...servers.mysql import errors
from ...servers.mysql.server import MariaDBServer
from ...servers.mysql.session import MariaDBSession
from ..machine import Listener
from .base import SimulatedEngine

if TYPE_CHECKING:
    from ..process import ClientProcess
    from ..world import ByteWorld

USER, PASSWORD = "locks", "secret"
DEADLOCK_COUNT = 12
"""More often than a statement is tried again."""
SLOW_S = 0.01
"""With this latency the tables, statement by statement, cannot be made within the shortest request timeout."""
LIFE = "holdfast-session-"
"""How the user locks begin that say that a session lives."""


class SimulatedMariaDB(SimulatedEngine):
    """The lock table."""

    name = "mysql"
    shares_faults = False
    ttls = (1.0, 2.0, 3.0)
    after_close_s = 1.5
    """A session that listens notices the end of its client within a second."""
    most_connections = 2
    """For requests, and to listen."""
    most_pushes_count = 20
    """They stay for a minute at most where nobody hears them."""

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        host = world.host("m1")
        self.server = MariaDBServer(host, users={USER: PASSWORD})
        if world.profile.latency >= SLOW_S or world.chance.random() < 0.8:
            self.server.database.meta = {"version": str(VERSION), "cluster": "sim"}
        self.listen(Listener(host, self.server))

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        url = f"{self.name}://{USER}:{PASSWORD}@m1/holdfast"
        return self._engine(url).open()

    def _engine(self, url: str) -> ClientEngine[Any, Any]:
        return open_table(url, "holdfast", self.world.profile.request_timeout)

    def may_refuse(self, error: HoldfastError) -> bool:
        """At the first connection, a wrong password or a server that cannot write are taken for a mistake."""
        return isinstance(error, Misconfigured)

    # Faults

    def wipe(self, seconds: float, backup: bool) -> None:
        """Never (rule 1)."""

    def jump_calendar(self, listener: Listener) -> None:
        super().jump_calendar(listener)
        self.world.invariants.leases.void(self.world.timeline.now)

    def end_connections(self, listener: Listener) -> None:
        """KILL CONNECTION, or the end of `wait_timeout`."""
        super().end_connections(listener)
        for session in list(self.server.sessions.values()):
            session.end()

    def special_fault(self, seconds: float) -> None:
        world = self.world
        faults = {
            "connection killed": self._kill_connection,
            "statement killed": self._kill_statement,
            "too many connections": self._fill,
            "read only": self._deny_writes,
            "disk full": self._fill_disk,
            "deadlocks": self._deadlock,
            "lock not had in time": self._time_out,
            "password changed": self._change_password,
        }
        kind = world.chance.choice(list(faults))
        world.fault(f"server: {kind}")
        world.trace("m1", "{} for {:.3f} s", kind, seconds)
        if (end := faults[kind]()) is not None:
            world.timeline.at(world.timeline.now + seconds, end)

    def _any_session(self) -> MariaDBSession | None:
        sessions = list(self.server.sessions.values())
        return self.world.chance.choice(sessions) if sessions else None

    def _kill_connection(self) -> None:
        if (session := self._any_session()) is not None:
            session.end()

    def _kill_statement(self) -> None:
        if (session := self._any_session()) is not None:
            session.interrupt()

    def _fill(self) -> Callable[[], None]:
        self.server.most_sessions = max(1, len(self.server.sessions) - self.world.chance.randint(0, 2))
        return self._make_room

    def _make_room(self) -> None:
        self.server.most_sessions = 151

    def _deny_writes(self) -> Callable[[], None]:
        self.server.read_only = True
        return self._allow_writes

    def _allow_writes(self) -> None:
        self.server.read_only = False

    def _fill_disk(self) -> Callable[[], None]:
        self.server.disk_full = True
        return self._empty_disk

    def _empty_disk(self) -> None:
        self.server.disk_full = False

    def _deadlock(self) -> None:
        for _ in range(self.world.chance.choice((1, 2, DEADLOCK_COUNT))):
            self.server.refuse_next(b"holdfast", errors.deadlock())

    def _time_out(self) -> None:
        self.server.refuse_next(b"holdfast", errors.lock_wait_timeout())

    def _change_password(self) -> Callable[[], None]:
        self.server.users[USER] = "another"
        return self._change_password_back

    def _change_password_back(self) -> None:
        self.server.users[USER] = PASSWORD

    def end_faults(self) -> None:
        super().end_faults()
        self._make_room()
        self._allow_writes()
        self._empty_disk()
        self._change_password_back()
        self.server.forget_faults()

    # What may be left

    def leftovers(self) -> list[str]:
        now = round(self.server.host.calendar() * 1_000_000)
        seats = self.server.database.table.seats
        return [
            f"{place.owner} in the line of {name}"
            for name, seat in seats.items()
            for place in seat.line.places
            if not place.gone(now)
        ]

    def growth(self) -> dict[str, tuple[int, int]]:
        return {"pushes": (len(self.server.database.pushes), self.most_pushes_count)}


class SimulatedMariaDBSessions(SimulatedMariaDB):
    """Session locks."""

    name = "mysql+session"
    ttls = (2.0, 3.0, 6.0)
    """Not less, because a session is not asked in haste."""
    only_mutexes = True
    evicts = False
    call_slack_s = SimulatedEngine.call_slack_s + HASTE
    most_connections = 5
    """The shared one, and those that rest."""

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        self._sessions: dict[str, int] = {}
        """On which session each owner was granted its lock."""

    def _engine(self, url: str) -> ClientEngine[Any, Any]:
        return open_session(url, "holdfast", self.world.profile.request_timeout)

    def jump_calendar(self, listener: Listener) -> None:
        SimulatedEngine.jump_calendar(self, listener)

    def granted(self, hold: Hold) -> None:
        rows = self.server.database.sessions.holders.values()
        owner = hold.claim.owner
        self._sessions[owner] = next((row.session for row in rows if row.owner == owner), 0)

    def excludes(self, hold: Hold) -> bool:
        return self._sessions.get(hold.claim.owner, 0) in self.server.sessions

    def leftovers(self) -> list[str]:
        sessions, tables = self.server.sessions, self.server.database.sessions
        held = [f"the lock {key}" for key in self.server.locks.held() if not str(key).startswith(LIFE)]
        waiting = [f"{owner} waiting" for owner, row in tables.waiters.items() if row.session in sessions]
        return held + waiting

    def after_close(self) -> dict[str, int]:
        return {**super().after_close(), "user locks": len(self.server.locks.held())}
