"""A simulated MariaDB: one database with holdfast's tables, its sessions and its user locks.

What can go wrong with it is set from outside: `read_only`, `disk_full`, `most_sessions`, `users` (a password changes),
`refuse_next` (the next statement with these words fails), `kill_connection`; and `stop`, `start`, `follow`, `promote`.
"""

from __future__ import annotations

from ..model import Host, Memory, Output
from ..relational.advisory_locks import AdvisoryLocks
from ..relational.database import Database
from ..relational.statement_runner import ServerError
from . import errors
from .packets import error, framed
from .session import MariaDBSession

VERSION = "10.11.18-MariaDB-0+deb12u1"
WAIT_TIMEOUT_S = 28_800
SETTINGS = {
    "binlog_format": "MIXED",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_read_only": "OFF",
    "log_bin": "OFF",
    "rpl_semi_sync_master_enabled": "OFF",
    "sync_binlog": "0",
    "wsrep_on": "OFF",
}


class Refusing:
    """What a client meets that is not let in."""

    def receive(self, data: bytes) -> None: ...

    def closed(self) -> None: ...


class MariaDBServer:
    def __init__(self, host: Host, name: str = "holdfast", users: dict[str, str] | None = None) -> None:
        self.host = host
        self.name = name
        self.users = {"root": ""} if users is None else users
        """Passwords. One that changes is asked for at the next log-in; who is in stays in."""
        self.version = VERSION
        self.wait_timeout_s = WAIT_TIMEOUT_S
        self.most_sessions = 151
        self.settings = dict(SETTINGS)
        self.replicas = 0
        self.read_only = False
        self.disk_full = False
        self.database = Database.empty(exact=False)
        self.sessions: dict[int, MariaDBSession] = {}
        self.locks = AdvisoryLocks()
        self._backup = self.database.copied()
        self._last_number = 0
        self._faults: list[tuple[bytes, ServerError]] = []

    # The model's interface

    def accept(self, output: Output) -> MariaDBSession | Refusing:
        if len(self.sessions) >= self.most_sessions:
            output.send(framed([error(errors.too_many())], 0))
            output.close()
            return Refusing()
        self._last_number += 1
        session = MariaDBSession(self, output, self._last_number)
        self.sessions[session.number] = session
        return session

    def stop(self) -> None:
        for session in list(self.sessions.values()):
            session.vanish()
        self.database.crash(0.0)  # tables in memory are empty after any restart

    def start(self, memory: Memory) -> None:
        if memory is Memory.NOTHING:
            self.database = Database.empty(exact=False)
        elif memory is Memory.BACKUP:
            self.database = self._backup.copied()

    def back_up(self) -> None:
        self._backup = self.database.copied()

    # A replica

    def follow(self, primary: MariaDBServer) -> None:
        """Catch up with the primary. What comes after this is not here, until the next time."""
        self.database = primary.database.copied()
        self.read_only = True
        primary.replicas = 1

    def promote(self) -> None:
        self.read_only = False

    # Faults

    def kill_query(self, number: int) -> None:
        self.sessions[number].interrupt()

    def kill_connection(self, number: int) -> None:
        self.sessions[number].end()

    def refuse_next(self, words: bytes, refusal: ServerError) -> None:
        """Have the next statement that contains these words refused: a deadlock, a lock that was waited for in vain."""
        self._faults.append((words, refusal))

    def forget_faults(self) -> None:
        """What was to be refused and was not asked for is not refused any more."""
        self._faults.clear()

    def check_fault(self, statement: bytes) -> None:
        for fault in self._faults:
            if fault[0] in statement:
                self._faults.remove(fault)
                raise fault[1]

    def check_writable(self, table: str) -> None:
        if self.read_only:
            raise errors.read_only()
        if self.disk_full:
            raise errors.table_full(table)

    def facts(self) -> dict[str, str]:
        return {**self.settings, "version": self.version, "read_only": "ON" if self.read_only else "OFF"}
