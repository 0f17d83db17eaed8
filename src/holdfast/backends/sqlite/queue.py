"""Lines as rows: loaded whole, saved by what changed. Runs inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from ..._core.line import Line, Place
from .programs import SQL

Execute = Callable[..., sqlite3.Cursor]


class SQLiteLines:
    """The lines of one transaction; `contended`: its names are those for which somebody waits."""

    def __init__(self, execute: Execute, prefix: str, contended: bool = False) -> None:
        self._contended = contended
        self._execute = execute
        self._prefix = prefix
        self._marks: dict[str, int] = {}
        self._last: dict[str, int] = {}

    def load(self, name: str) -> Line:
        line = Line()
        last = -1
        for row in self._execute(SQL["load"], (self._prefix + name,)):
            last = row[-1]
            if last == 0:
                line.mark, line.capacity = row[0], row[1]
            if row[2] is not None:
                line.capacity = row[1]
                line.places.append(Place(*row[2:]))  # the columns stand in the order of its fields
        self._marks[name] = line.mark
        self._last[name] = last
        return line

    def save(self, name: str, line: Line) -> None:
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

    def _enter(self, name: str, key: str, line: Line, place: Place) -> None:
        """A new place: on the seat if it is alone, else behind the last."""
        alone = len(line.places) == 1
        place.rank = 0 if alone else max(self._last[name], 0) + 1
        self._last[name] = max(self._last[name], place.rank)
        self._execute(
            SQL["enter"],
            (key, place.rank, line.mark if alone else 0, line.capacity, place.owner, place.weight, place.fair,
             place.ttl, place.patience, place.delay, place.since, place.expires, place.token, place.evicted,
             place.wake, place.actor, place.mode, place.host, place.pid),
        )  # fmt: skip

    def names(self, prefix: str) -> Iterable[str]:
        rows = self._execute(SQL["names"], (self._prefix + prefix, self._contended)).fetchall()
        return [name.removeprefix(self._prefix) for (name,) in rows]

    def load_tat(self, name: str) -> int:
        row = self._execute(SQL["load_tat"], (self._prefix + name,)).fetchone()
        return 0 if row is None else row[0]

    def save_tat(self, name: str, tat: int) -> None:
        self._execute(SQL["save_tat"], (self._prefix + name, tat))
