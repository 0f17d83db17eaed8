"""Who is told when a watch fires, and of what: the part of a link that is the same for threads and for tasks.

1. What a connection brings is in the order in which it happened. So the news of an owner are in order, too.
2. News do not go beyond the connection on which they came: when it is lost, those who wait are told of a `GAP`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from .claim_state import GAP
from .claim_tracker import ClaimTracker
from .ops import Op, Unwatch, Watches
from .session import CREATED, DELETED
from .timing import beat, settling

PROVING = frozenset((2, 5, 9, 14, 15, 19))
"""Kinds of operations that are answered only by way of the leader."""

READING = frozenset((3, 4, 9, 12))
"""Kinds of operations that change nothing: whatever became of them, they may be asked again."""


class WatchRegistry:
    """Owners by the paths that they watch; and the tracker, for what happens to our own nodes."""

    def __init__(self, tracker: ClaimTracker) -> None:
        self._tracker = tracker
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
            self._tracker.event(kind == DELETED, path)
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
    """When the leader was last heard, and what it surely knows of us: see `timing`, rule 3.

    A word that was answered by a follower's way has reached the leader after `settling`. So the leader surely knows of
    the latest word that is older than that; the session covers it if there was one as usual.
    """

    def __init__(self, now: float, ttl: float, least: float) -> None:
        self._usual = 1.5 * beat(ttl)
        self._settling = settling(least)
        self.at = now
        self._words: deque[float] = deque((now,))
        """When we spoke, a few times a beat, from the latest that the leader surely knows of."""

    def note(self, sent: float) -> None:
        if sent > self.at:
            self.at = sent
            words = self._words
            if sent > words[-1] + self._usual / 4:
                words.append(sent)
                while len(words) > 1 and words[1] <= sent - self._settling:
                    words.popleft()

    def unheard(self, now: float) -> float:
        surely = self._words[0]
        for word in self._words:
            if word > now - self._settling:
                break
            surely = word
        return now - surely if now - surely > self._settling + self._usual else 0.0


def proves(ops: Sequence[Op]) -> bool:
    """Whether the answers show that the leader was heard."""
    return ops[0].kind in PROVING or any(op.kind in PROVING for op in ops)


def repeatable(ops: Sequence[Op]) -> bool:
    """Whether they may be asked again on another connection, if this one is lost before the answers have come."""
    return all(op.kind in READING for op in ops)
