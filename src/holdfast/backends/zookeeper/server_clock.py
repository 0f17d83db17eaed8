"""The server's calendar, for those who only look: told by a write, and counted on by our own clock for a while.

A server tells the time only of what it has written. To write with each look would put every observer into the log of
the ensemble. So one write is enough for a minute; what is shown meanwhile may be wrong by what two leaders differ.
"""

from __future__ import annotations

from .jute import Stat
from .ops import Failure, Op, Write
from .paths import CLOCK
from .tree import Tree

GOOD_FOR_S = 60.0


class ServerClock:
    def __init__(self, tree: Tree) -> None:
        self._write = Write(tree.names + CLOCK, b"")
        self._told = 0
        self._at = float("-inf")

    def tick(self, now: float) -> list[Op]:
        """What to ask with the next request, so that the time can be read."""
        return [] if now < self._at + GOOD_FOR_S else [self._write]

    def read(self, answer: Stat | Failure | None, now: float) -> int:
        """In milliseconds, from the answer to `tick` if there was one; 0 if nobody has told it yet."""
        if isinstance(answer, Stat):
            self._told, self._at = answer.mtime, now
        return self._told + int((now - self._at) * 1000) if self._told else 0
