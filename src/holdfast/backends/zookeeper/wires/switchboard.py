"""Who is told when a watch fires: the part of a link that is the same for threads and for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..book import Book
from ..ops import Op, Watch
from ..session import DELETED
from .pace import beat, settling

PROVING = frozenset((2, 5, 9, 14, 15, 19))
"""Kinds of operations that are answered only by way of the leader."""


class Switchboard:
    """Owners by the paths that they watch; and the book, for what happens to our own nodes."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._watchers: dict[str, list[str]] = {}

    def connect(self, owner: str, ops: Sequence[Op]) -> bool:
        """Before a watch goes out. Whether there is one."""
        found = False
        for op in ops:
            if op.__class__ is Watch:
                found = True
                self._watchers.setdefault(op.path, []).append(owner)
        return found

    def events(self, events: Iterable[tuple[int, str]]) -> list[str]:
        """The owners to be woken."""
        woken: list[str] = []
        for kind, path in events:
            woken += self._watchers.pop(path, ())
            self._book.event(kind == DELETED, path)
        return woken

    def forget_idle(self, watched: Iterable[str]) -> None:
        """Forget paths that are not watched any more."""
        for path in self._watchers.keys() - set(watched):
            self._watchers.pop(path, None)


class Proof:
    """When the leader was last heard, and how long it had not heard of us before: see `pace`, rule 3."""

    def __init__(self, now: float, ttl: float, least: float) -> None:
        self._usual = 1.5 * beat(ttl)
        self._settling = settling(least)
        self.at = now
        self._before, self._until = now, 0.0

    def note(self, sent: float) -> None:
        gap = sent - self.at
        if gap > self._usual:
            if gap > self._settling or self.at > self._until:  # else the last word may be under way to the leader still
                self._before = self.at
            self._until = sent + self._settling
        if gap > 0:
            self.at = sent

    def unheard(self, now: float) -> float:
        return now - self._before if now <= self._until else 0.0


def proves(ops: Sequence[Op]) -> bool:
    """Whether the answers show that the leader was heard."""
    return ops[0].kind in PROVING or any(op.kind in PROVING for op in ops)
