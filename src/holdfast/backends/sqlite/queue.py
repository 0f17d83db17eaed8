"""Lines as rows: loaded as far as they matter, saved by what changed. Runs inside the caller's transaction.

1. What matters is the seat, all holds, those who ask, and the first who wait. Whoever stands behind these is granted
   nothing, unless all before them are granted or gone: then `Further` is raised before anything of that line is saved,
   and it is all done again with more of the line.
2. A line in which some may overtake is loaded whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..._core.line import Ended, Line, Place
from ..relational.records import behind_prefix
from .programs import SQL

Execute = Callable[..., sqlite3.Cursor]
Row: TypeAlias = sqlite3.Row
"""The columns of `load`, as far as types go: they come as a tuple."""
OWNER, PLACE = 6, -2
"""Where the fields of a `Place` begin, and where its rank is."""
FIRST_COUNT = 8
"""How many of those who wait are loaded at first."""
FURTHER_RATIO = 16


class Further(Exception):
    """More of a line is needed (rule 1)."""


@dataclass(slots=True, eq=False)
class PartOfLine(Line):
    """A line without those far behind. `end` is its last place, `seen` that of the last waiter that is loaded."""

    end: int = 0
    seen: int = 0

    def ahead(self, mine: Place, now: int) -> int:
        """As `Line.ahead`, or more: those who have left in the middle may count."""
        rank = mine.rank if mine.rank >= 0 else self.end + 1
        if rank <= self.seen:
            return Line.ahead(self, mine, now)
        self.check()
        first = min(place.rank for place in self.places if not place.token and place.rank >= 0)
        return sum(place.counts(now) for place in self.places if place.token) + rank - first

    def check(self) -> None:
        """See that those who are not loaded do not matter (rule 1)."""
        if not any(not place.token and 0 <= place.rank <= self.seen for place in self.places):
            raise Further


class SQLiteLines:
    """The lines of one transaction, for these owners; `contended`: its names are those for which somebody waits.

    `first`: how many of those who wait are loaded; None: all.
    """

    def __init__(
        self,
        execute: Execute,
        prefix: str,
        owners: Collection[str] = (),
        first: int | None = None,
        contended: bool = False,
    ) -> None:
        self._contended = contended
        self._execute = execute
        self._prefix = prefix
        self._owners = owners
        self._first = first
        self._marks: dict[str, int] = {}
        self._ended: dict[str, Ended | None] = {}
        self._last: dict[str, int] = {}

    def load(self, name: str) -> Line:
        key = self._prefix + name
        line: Line = Line()
        rows: list[Row] | None = None
        if self._first is not None:
            [last, overtaken] = self._execute(SQL["last_place"], (key,)).fetchone()
            if last is not None and last > self._first and not overtaken:
                line, rows = self._load_part(key, last, self._first)
        if rows is None:
            rows = self._execute(SQL["load"], (key,)).fetchall()
            last = rows[-1][PLACE] if rows else -1
        live = False
        for row in rows:
            if row[PLACE] == 0:
                line.mark, line.capacity = row[0], row[1]
                line.last = Ended(row[2], row[3], row[4], bool(row[5])) if row[2] else None
            if row[OWNER] is not None:
                place = Place(*row[OWNER:])  # the columns stand in the order of its fields
                if not place.evicted or not live:  # who was evicted may have asked for another capacity
                    line.capacity = row[1]
                live = live or not place.evicted
                line.places.append(place)
        self._marks[name] = line.mark
        self._ended[name] = line.last
        self._last[name] = last
        return line

    def _load_part(self, key: str, last: int, most: int) -> tuple[Line, list[Row] | None]:
        waiting = self._execute(SQL["load_first"], (key, most)).fetchall()
        if len(waiting) < most:
            return Line(), None
        rows = [*self._execute(SQL["load_seat"], (key,)), *self._execute(SQL["load_holds"], (key,)), *waiting]
        for owner in self._owners:
            rows += self._execute(SQL["load_own"], (key, owner))
        by_place = {row[PLACE]: row for row in rows}
        return PartOfLine(end=last, seen=waiting[-1][PLACE]), [by_place[place] for place in sorted(by_place)]

    def save(self, name: str, line: Line) -> None:
        if isinstance(line, PartOfLine):
            line.check()
        key = self._prefix + name
        for place in line.removed:
            if place.rank == 0:
                self._execute(SQL["stand_up"], (key,))
            elif place.rank > 0:
                self._execute(SQL["leave"], (key, place.rank))
        for place in line.changed:
            if place.rank < 0:
                self._enter(name, key, line, place)
            else:
                self._execute(
                    SQL["change"],
                    (key, place.rank, place.owner, place.token, place.since, place.expires, place.evicted,
                     place.delay, place.wake),
                )  # fmt: skip
        if line.mark != self._marks[name]:
            self._execute(SQL["save_mark"], (key, line.mark))
            self._marks[name] = line.mark
        if (ended := line.last) is not None and ended != self._ended[name]:
            self._execute(SQL["save_ended"], (key, ended.token, ended.owner, ended.how, ended.robust))
            self._ended[name] = ended

    def _enter(self, name: str, key: str, line: Line, place: Place) -> None:
        """A new place: on the seat if it is alone, else behind the last."""
        alone = len(line.places) == 1
        place.rank = 0 if alone else max(self._last[name], 0) + 1
        self._last[name] = max(self._last[name], place.rank)
        self._execute(
            SQL["enter"],
            (key, place.rank, line.mark if alone else 0, line.capacity, place.owner, place.weight, place.fair,
             place.ttl, place.patience, place.delay, place.since, place.expires, place.token, place.evicted,
             place.wake, place.actor, place.mode, place.host, place.pid, place.robust),
        )  # fmt: skip

    def names(self, prefix: str) -> Iterable[str]:
        first = self._prefix + prefix
        rows = self._execute(SQL["names"], (first, self._contended, behind_prefix(first))).fetchall()
        return [name.removeprefix(self._prefix) for (name,) in rows]

    def load_tat(self, name: str) -> int:
        row = self._execute(SQL["load_tat"], (self._prefix + name,)).fetchone()
        return 0 if row is None else row[0]

    def save_tat(self, name: str, tat: int) -> None:
        self._execute(SQL["save_tat"], (self._prefix + name, tat))
