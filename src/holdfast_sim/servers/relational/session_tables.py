"""The tables of session locks: who holds under which token, who waits, and the floor and ceiling of tokens.

1. Which session holds is what the advisory locks say; a row tells who that is, and carries the mark of the name.
2. No token is given at or above the ceiling, which is on disk before it is used; a crash empties the floor, and whoever
   finds it empty puts it where the ceiling was (`schema/ceiling.sql`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .advisory_locks import SessionId

STEP_US = 2_000_000
"""By how much the ceiling is raised."""


@dataclass(slots=True)
class HolderRow:
    """A row of `holdfast_session`."""

    mark: int
    since: int
    session: SessionId
    owner: str
    who: str
    above: int
    written: float
    """When, on the server's own clock: a crash may lose what was written last."""
    advisory_key: int = 0


@dataclass(slots=True)
class WaiterRow:
    """A row of `holdfast_session_waiter`; `key` names the lock."""

    key: str
    since: int
    session: SessionId
    who: str


@dataclass(slots=True)
class SessionTables:
    holders: dict[str, HolderRow] = field(default_factory=dict)
    waiters: dict[str, WaiterRow] = field(default_factory=dict)
    names: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The long name of each hash, and since when; MariaDB only, whose rows in memory have no room for it."""
    ceiling: int = 0
    floor: tuple[int, int] | None = None
    """The floor, and the ceiling as it was raised last; None after a crash."""

    def raise_above(self, token: int) -> None:
        old = self.ceiling
        self.ceiling = max(old, token) + STEP_US
        self.floor = (old if self.floor is None else self.floor[0], self.ceiling)

    def mint(self, key: str, row: HolderRow, now: int, early: bool) -> int:
        """A token for who has just got this lock; `row` takes the place of the one before.

        `early`: the ceiling is raised once the clock has reached it (MariaDB), not only once a token has.
        """
        if self.floor is None or (early and self.floor[1] <= now):
            self.raise_above(now)
        assert self.floor is not None
        below, above = self.floor
        old = self.holders.get(key)
        token = max(now, below, 0 if old is None else old.mark + 1)
        row.mark, row.above = token, above
        self.holders[key] = row
        if token >= above:
            self.raise_above(token)
        return token

    def queue(self, owner: str, row: WaiterRow, anew: bool) -> None:
        """Be seen waiting; who is seen already is seen on this session from now on (`anew`: by `since`, too)."""
        if (old := self.waiters.get(owner)) is not None:
            if anew and old.session != row.session:
                old.since = row.since
            old.session = row.session
        else:
            self.waiters[owner] = row

    def crash(self, kept_before: float) -> None:
        """What is not logged is empty, and of the holders' rows those written since `kept_before` are lost."""
        self.holders = {key: row for key, row in self.holders.items() if row.written < kept_before}
        self.waiters.clear()
        self.floor = None
