"""What a server keeps of one database, and what of that is left after a crash, a restart or a fail-over."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field

from .lock_table import LockTable
from .session_tables import SessionTables


@dataclass(slots=True)
class Database:
    table: LockTable
    sessions: SessionTables = field(default_factory=SessionTables)
    pushes: dict[tuple[int, str], tuple[int, int, str]] = field(default_factory=dict)
    """(wake, owner) → (token, since, note): `holdfast_push`, MariaDB only."""
    meta: dict[str, str] | None = None
    """Version and cluster; None while the tables are not there."""

    @classmethod
    def empty(cls, exact: bool) -> Database:
        return cls(LockTable(exact))

    def copied(self) -> Database:
        """As a backup or a standby has it: what is not logged is not in it."""
        other = copy.deepcopy(self)
        other.crash(math.inf)
        return other

    def crash(self, kept_before: float) -> None:
        self.sessions.crash(kept_before)
