"""A line as it was last listed, and what is known of it since: so that a look need not list it again.

1. The server numbers the children of a parent one by one, so nobody comes in before anybody. What stood before a claim
   when the line was listed is all that can ever stand before it, and only becomes less: what is heard to have ended is
   taken out, and what has ended unheard keeps its place. So nobody is granted too early by this.
2. A claim of ours that has the number after the last known one stands right behind that one, and is known, too.
3. Only a plain line is remembered: no will, tombstone, slot or end note stands there, no claim may leave one, and all
   have one capacity. Then nothing takes room but claims, unless somebody is granted out of turn; and for that the
   parent is written to. So whoever goes on from here reads the parent's stat, and its own node after that: a parent of
   another czxid is another parent, with other numbers, and one of another mzxid was written to. All of that is of one
   session: what another one has heard may have happened after what this one reads.
4. What stands far before a claim tells it nothing: if those right before it leave it no room, it has none. So it is
   shown as many as that takes, and one more, so that none of them seems to be the first that is not.
5. Threads share it: every step is one operation on a dict.
"""

from __future__ import annotations

from itertools import islice

from .jute import Stat
from .paths import QueueEntry
from .queue import NodeQueue

SHOWN_COUNT = 20
"""Of a long line a claim is shown so many at least."""
FRONT_COUNT = 100


class KnownLine:
    """One name's, as seen on one session."""

    def __init__(self, claims: list[QueueEntry], parent: Stat, session: int) -> None:
        self._parent = parent
        self._session = session
        self._entries = {entry.node: entry for entry in claims}
        self._capacity = max(entry.capacity for entry in claims)
        self._last = claims[-1].number

    @classmethod
    def of(cls, line: NodeQueue, parent: Stat, session: int) -> KnownLine | None:
        """None if it is not plain (rule 3)."""
        if line.wills or line.tombstones or line.slots or line.notes or not line.claims:
            return None
        capacities = {entry.capacity for entry in line.claims if entry.capacity}
        if len(capacities) != 1 or not all(entry.plain for entry in line.claims):
            return None
        return cls(line.claims, parent, session)

    def append(self, entry: QueueEntry, session: int) -> None:
        """A claim of ours that has come; nothing if others may stand before it (rule 2)."""
        if self._last + 1 == entry.number and session == self._session and self._is_plain(entry):
            self._entries[entry.node] = entry
            self._last = entry.number

    def _is_plain(self, entry: QueueEntry) -> bool:
        return entry.plain and entry.capacity == self._capacity

    def remove(self, node: str, session: int) -> None:
        """It has ended, as heard on this session."""
        if session == self._session:
            self._entries.pop(node, None)

    def remove_before(self, node: str, session: int) -> None:
        """This one holds, and leaves no room: nobody stands before it."""
        if node in self._entries and session == self._session:
            for each in self._front():
                if each == node:
                    break
                self._entries.pop(each, None)

    def is_of(self, parent: Stat) -> bool:
        """Whether this is still true, by the parent's stat (rule 3)."""
        return parent.czxid == self._parent.czxid and parent.mzxid == self._parent.mzxid

    def before(self, node: str, session: int) -> list[str] | None:
        """What may stand before this one, as far as it matters (rule 4), and itself; None if it is not known."""
        if node not in self._entries or session != self._session:
            return None
        nodes = self._front()
        if node not in nodes:
            nodes = list(self._entries)
        if node not in nodes:
            return None
        found, weight = [node], 0
        for each in reversed(nodes[: nodes.index(node)]):
            found.append(each)
            if weight > 2 * self._capacity and len(found) > SHOWN_COUNT:
                break
            entry = self._entries.get(each)
            weight += 0 if entry is None else entry.weight or self._capacity
        return found[::-1]

    def _front(self) -> list[str]:
        try:
            return list(islice(self._entries, FRONT_COUNT))
        except RuntimeError:  # another thread has changed it in between
            return list(self._entries)
