"""A simulated PostgreSQL: one database with holdfast's tables, its sessions and its advisory locks.

What can go wrong with it is set from outside: `standby`, `read_only`, `disk_full`, `most_sessions`, `users` (a password
changes), `refuse_next`, `kill_query` and `kill_connection`; and `stop`, `start`, `follow`, `promote`.
"""

from __future__ import annotations

from ..model import Host, Memory, Output
from ..relational.advisory_locks import AdvisoryLocks
from ..relational.database import Database
from ..relational.session_tables import WaiterRow
from ..relational.statement_runner import ServerError
from . import errors
from .session import PostgreSQLSession

VERSION_NUMBER = 150018
LOST_S = 0.6
"""A crash loses what was committed without a flush for so long: three times `wal_writer_delay`."""


class PostgreSQLServer:
    def __init__(self, host: Host, name: str = "holdfast", users: dict[str, str] | None = None) -> None:
        self.host = host
        self.name = name
        self.users = {"postgres": ""} if users is None else users
        """Passwords; a user without one is trusted. One that changes is asked for at the next log-in."""
        self.version_number = VERSION_NUMBER
        self.most_sessions = 100
        self.standby = False
        self.read_only = False
        self.disk_full = False
        self.standbys = 0
        self.settings = {"synchronous_commit": "on", "fsync": "on", "synchronous_standby_names": ""}
        self.database = Database.empty(exact=True)
        self.sessions: dict[int, PostgreSQLSession] = {}
        self.locks = AdvisoryLocks()
        self.last_pid = 1000
        self._backup = self.database.copied()
        self._faults: list[tuple[bytes, ServerError]] = []

    # The model's interface

    def accept(self, output: Output) -> PostgreSQLSession:
        self.last_pid += 1
        session = PostgreSQLSession(self, output, self.last_pid)
        self.sessions[session.number] = session
        return session

    def stop(self) -> None:
        for session in list(self.sessions.values()):
            session.vanish()
        self.database.crash(self.host.now() - LOST_S)

    def start(self, memory: Memory) -> None:
        if memory is Memory.NOTHING:
            self.database = Database.empty(exact=True)
        elif memory is Memory.BACKUP:
            self.database = self._backup.copied()

    def back_up(self) -> None:
        self._backup = self.database.copied()

    # A standby

    def follow(self, primary: PostgreSQLServer) -> None:
        """Catch up with the primary. What comes after this is not here, until the next time."""
        self.database = primary.database.copied()
        self.standby = True
        primary.standbys = 1

    def promote(self) -> None:
        self.standby = False

    # Sessions

    def lives(self, row: WaiterRow) -> bool:
        """Whether the session is there that is seen waiting, and not another one with its process id."""
        session = self.sessions.get(row.session)
        return session is not None and session.started_us <= row.since

    def notify(self, pid: int, channel: str, payload: str) -> None:
        for session in list(self.sessions.values()):
            session.hear(pid, channel, payload)

    def kill_query(self, pid: int) -> bool:
        """pg_cancel_backend, or a cancel request; it does nothing to a session that carries out nothing."""
        if (session := self.sessions.get(pid)) is None:
            return False
        session.interrupt(errors.canceled("user request"))
        return True

    def kill_connection(self, pid: int) -> None:
        """pg_terminate_backend."""
        self.sessions[pid].fail(errors.terminated())

    # Faults

    def refuse_next(self, words: bytes, refusal: ServerError) -> None:
        """Have the next statement that contains these words refused."""
        self._faults.append((words, refusal))

    def forget_faults(self) -> None:
        """What was to be refused and was not asked for is not refused any more."""
        self._faults.clear()

    def check_fault(self, statement: bytes) -> None:
        for fault in self._faults:
            if fault[0] in statement:
                self._faults.remove(fault)
                raise fault[1]

    def check_writable(self, verb: str) -> None:
        if self.standby or self.read_only:
            raise errors.read_only(verb)
        if self.disk_full:
            raise errors.disk_full()

    def facts(self, pid: int) -> list[str | None]:
        """In the order of `greeting.Facts`."""
        there = "public" if self.database.meta is not None else None
        return [
            *(str(pid), "t" if self.standby else "f", "on" if self.standby or self.read_only else "off"),
            *(str(self.version_number), "UTF8", "read committed", *self.settings.values(), str(self.standbys)),
            *("f" if there is None else "t", '"$user", public', there, there),
        ]

    def told(self) -> dict[str, str]:
        """What a client is told after its log-in."""
        return {
            "client_encoding": "UTF8",
            "server_encoding": "UTF8",
            "server_version": "{}.{}".format(*divmod(self.version_number, 10000)),
            "integer_datetimes": "on",
            "standard_conforming_strings": "on",
            "DateStyle": "ISO, MDY",
            "TimeZone": "Etc/UTC",
        }
