"""What is the same in the worlds of MariaDB and PostgreSQL: one server, with the lock table or with session locks.

1. Its state is on disk: it stops and starts, and never comes back with nothing, or with a backup.
2. Claims of the lock table are over by its calendar, so a jump forward ends leases early (docs/mysql.md,
   docs/postgresql.md). Session locks know no clock.
3. A session lock ends with its session, and its holder learns of that at the next renewal. So a lease whose session has
   ended excludes nobody but the other claims of its coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from holdfast._core.lease import Hold
from holdfast.backends.session_backend import HASTE_S
from holdfast.errors import HoldfastError, Misconfigured

from ...servers.model import Host, Server
from ...servers.relational.advisory_locks import AdvisoryLocks
from ...servers.relational.database import Database
from ...servers.relational.statement_runner import ServerError
from ..machine import Listener
from .base import SimulatedEngine

if TYPE_CHECKING:
    from ..world import ByteWorld

USER, PASSWORD = "locks", "secret"
DEADLOCK_COUNT = 12
"""More often than a statement is tried again."""
SLOW_S = 0.01
"""With this latency the tables, statement by statement, cannot be made within the shortest request timeout."""


class DatabaseServer(Server, Protocol):
    """A simulated server, and what can go wrong with it."""

    host: Host
    users: dict[str, str]
    most_sessions: int
    read_only: bool
    disk_full: bool
    database: Database
    locks: AdvisoryLocks

    @property
    def sessions(self) -> Mapping[int, Any]: ...

    def refuse_next(self, words: bytes, refusal: ServerError) -> None: ...

    def forget_faults(self) -> None: ...

    def kill_query(self, number: int, /) -> object: ...

    def kill_connection(self, number: int, /) -> None: ...


class SimulatedDatabase(SimulatedEngine):
    """The lock table. An engine gives its server (`serve`), how to open it, and what has no value here."""

    shares_faults = False
    ttls = (1.0, 2.0, 3.0)
    most_connections = 2
    """For requests, and to listen."""
    address: str
    """Where its machine is."""
    version: int
    """Of the tables that the client finds."""
    facts: dict[str, str] = {}  # noqa: RUF012
    """What else stands beside the version."""
    deadlock: ServerError
    lock_timeout: ServerError

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        machine = world.host(self.address)
        self.server = self.serve(machine, {USER: PASSWORD})
        self._most_sessions = self.server.most_sessions
        if world.profile.latency >= SLOW_S or world.chance.random() < 0.8:
            self.server.database.meta = {"version": str(self.version), "cluster": "sim", **self.facts}
        self.listen(Listener(machine, self.server))

    def serve(self, host: Host, users: dict[str, str]) -> DatabaseServer:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"{self.name}://{USER}:{PASSWORD}@{self.address}/holdfast"

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
        """By an operator, or because they were idle."""
        super().end_connections(listener)
        for number in list(self.server.sessions):
            self.server.kill_connection(number)

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
        world.trace(self.address, "{} for {:.3f} s", kind, seconds)
        if (end := faults[kind]()) is not None:
            world.timeline.at(world.timeline.now + seconds, end)

    def _kill_connection(self) -> None:
        if self.server.sessions:
            self.server.kill_connection(self.world.chance.choice(list(self.server.sessions)))

    def _kill_statement(self) -> None:
        if self.server.sessions:
            self.server.kill_query(self.world.chance.choice(list(self.server.sessions)))

    def _fill(self) -> Callable[[], None]:
        self.server.most_sessions = max(1, len(self.server.sessions) - self.world.chance.randint(0, 2))
        return self._make_room

    def _make_room(self) -> None:
        self.server.most_sessions = self._most_sessions

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
            self.server.refuse_next(b"holdfast", self.deadlock)

    def _time_out(self) -> None:
        self.server.refuse_next(b"holdfast", self.lock_timeout)

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


class SessionLocks(SimulatedDatabase):
    """What session locks do otherwise: to be derived from together with the lock table of an engine."""

    ttls = (2.0, 3.0, 6.0)
    """Not less, because a session is not asked in haste."""
    only_mutexes = True
    evicts = False
    call_slack_s = SimulatedEngine.call_slack_s + HASTE_S
    most_connections = 5
    """The shared one, and those that rest."""
    life = ""
    """How the locks begin that only say that a session lives."""

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        self._granted_on: dict[str, int] = {}
        """On which session each owner was granted its lock."""

    def jump_calendar(self, listener: Listener) -> None:
        SimulatedEngine.jump_calendar(self, listener)

    def granted(self, hold: Hold) -> None:
        rows = self.server.database.sessions.holders.values()
        owner = hold.claim.owner
        self._granted_on[owner] = next((row.session for row in rows if row.owner == owner), 0)

    def excludes(self, hold: Hold) -> bool:
        return self._granted_on.get(hold.claim.owner, 0) in self.server.sessions

    def leftovers(self) -> list[str]:
        sessions, tables = self.server.sessions, self.server.database.sessions
        held = [f"the lock {key}" for key in self.server.locks.held() if not self._says_life(key)]
        waiting = [f"{owner} waiting" for owner, row in tables.waiters.items() if row.session in sessions]
        return held + waiting

    def _says_life(self, key: object) -> bool:
        return bool(self.life) and str(key).startswith(self.life)

    def after_close(self) -> dict[str, int]:
        return {**super().after_close(), "locks of sessions": len(self.server.locks.held())}
