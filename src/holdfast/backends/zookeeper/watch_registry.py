"""Who is told when a watch fires, and of what: the part of a link that is the same for threads and for tasks.

1. What a connection brings is in the order in which it happened. So the news of an owner are in order, too.
2. News do not go beyond the connection on which they came: when it is lost, those who wait are told of a `GAP`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .claim_tracker import ClaimTracker
from .ops import Op, Unwatch, Watches
from .places import GAP
from .session import CREATED, DELETED
from .timing import beat, settling

PROVING = frozenset((2, 5, 9, 14, 15, 19))
"""Kinds of operations that are answered only by way of the leader."""

READING = frozenset((3, 4, 9, 12))
"""Kinds of operations that change nothing: whatever became of them, they may be asked again."""


class WatchRegistry:
    """Owners by the paths that they watch; and the book, for what happens to our own nodes."""

    def __init__(self, book: ClaimTracker) -> None:
        self._book = book
        self._watchers: dict[str, list[str]] = {}
        self._news: dict[str, list[str]] = {}
        self._expected: dict[str, str] = {}
        """By owner: a path that it waits for to be made, which may never be."""

    def connect(self, owner: str, ops: Sequence[Op]) -> bool:
        """Before a watch goes out. Whether there is one."""
        found = False
        for op in ops:
            if op.__class__ is Unwatch:
                self._expect_nothing(owner)
            elif op.__class__ is Watches:
                found = True
                self._news.setdefault(owner, [])
                for path in op.made:
                    self._expect_nothing(owner)
                    self._expected[owner] = path
                for path in (*op.paths, *op.made):
                    self._watchers.setdefault(path, []).append(owner)
        return found

    def events(self, events: Iterable[tuple[int, str]]) -> list[str]:
        """The owners to be woken."""
        woken: list[str] = []
        for kind, path in events:
            if kind in (DELETED, CREATED):  # what is written to a node is news to its owner only
                for owner in self._watchers.pop(path, ()):
                    if (news := self._news.get(owner)) is not None:
                        news.append(path)
                        woken.append(owner)
            self._book.event(kind == DELETED, path)
        return woken

    def hear(self, owner: str) -> list[str]:
        """The paths of which this owner has not heard yet that they are gone, or made."""
        news = self._news.get(owner, [])
        if news:
            self._news[owner] = []
        return news

    def lost(self) -> None:
        """The connection is."""
        for news in list(self._news.values()):
            news.append(GAP)
        for owner in list(self._expected):
            self._expect_nothing(owner)

    def forget(self, owner: str) -> None:
        self._news.pop(owner, None)
        if owner in self._expected:
            self._expect_nothing(owner)

    def _expect_nothing(self, owner: str) -> None:
        """What it waited for to be made will not be."""
        path = self._expected.pop(owner, "")
        if owners := [each for each in self._watchers.pop(path, ()) if each != owner]:
            self._watchers[path] = owners


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


def repeatable(ops: Sequence[Op]) -> bool:
    """Whether they may be asked again on another connection, if this one is lost before the answers have come."""
    return all(op.kind in READING for op in ops)
