"""The line of a name as keys tell it, and who of it holds: pure reading.

1. Claims stand in the order of their create revisions. Nobody comes in before anybody, so who holds is a function of
   the keys: a claim holds if it and everything before it fit into the capacity. Nothing has to be written for that: the
   end of a claim *is* the grant of the next one.
2. What was granted out of turn (`fair=False`) says so in its value, and counts before all others.
3. A ghost counts once the claim that it belongs to is gone.
4. The capacity of a line is that of its oldest claim; a claim with another one does not count, and is about to leave.
5. Tokens grow in the order of grants. Where nobody was let past anybody that is the order of the claims, and the token
   of each is its create revision. A grant out of turn is written down, and its token is the revision of that: its mod
   revision. Everybody who waits at that moment came before it and will hold after it, and gets a mark in the same
   transaction: that its own grant is to be written down, too, in the same way, before it is let in. So whoever has no
   mark came after every grant that was written down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .keys import GHOST
from .rpc import KeyValue, OpResponse, unb64

WAITING, MARKED, CONFIRMED = 0, 1, 2
"""What a claim's value says of its grant: nothing; that it holds; that it holds since its last change (rule 5)."""


@dataclass(slots=True)
class Place:
    """One claim, or ghost, as its key tells it."""

    key: str
    name: str
    owner: str
    created: int
    changed: int
    lease: int
    value: dict[str, Any]
    ghost: bool = False

    @property
    def weight(self) -> int:
        return int(self.value.get("w", 1))

    @property
    def capacity(self) -> int:
        return int(self.value.get("c", 1))

    @property
    def granted(self) -> int:
        return int(self.value.get("g", WAITING))

    @property
    def marked(self) -> bool:
        """Its create revision is no token any more (rule 5)."""
        return bool(self.value.get("o"))

    @property
    def stays(self) -> bool:
        """Its end may leave a ghost."""
        return bool(self.value.get("l"))

    @property
    def token(self) -> int:
        if token := self.value.get("k"):
            return int(token)
        return self.changed if self.granted == CONFIRMED else self.created


def read(kv: KeyValue) -> Place:
    key = kv["key"]
    head, _, seat = unb64(key).rpartition("\0")
    value = json.loads(unb64(kv["value"]))
    return Place(
        key,
        head.split("/", 2)[2],
        value["i"],
        int(kv["create_revision"]),
        int(kv["mod_revision"]),
        int(kv.get("lease", 0)),
        value,
        seat.startswith(GHOST),
    )


def read_all(response: OpResponse) -> list[Place]:
    """The places of one range, in their order."""
    return sorted(map(read, response["response_range"].get("kvs", ())), key=lambda place: place.created)


@dataclass(slots=True)
class Line:
    """One name: who holds, who waits, and what else takes up room."""

    capacity: int
    holding: list[Place] = field(default_factory=list)
    waiting: list[Place] = field(default_factory=list)
    ghosts: list[Place] = field(default_factory=list)

    @property
    def used(self) -> int:
        return sum(place.weight for place in (*self.holding, *self.ghosts))

    def before(self, owner: str) -> list[Place]:
        """All claims whose end may let this one in."""
        found: list[Place] = []
        for place in sorted((*self.holding, *self.waiting), key=lambda each: each.created):
            if place.owner == owner:
                break
            found.append(place)
        late = [place for place in self.holding if place not in found and place.owner != owner]
        return [*found, *late]


def judge(claims: Sequence[Place], ghosts: Iterable[Place]) -> Line:
    """Claims in order, and ghosts: who holds."""
    owners = {place.owner for place in claims}
    counting = [ghost for ghost in ghosts if ghost.owner not in owners]
    line = Line(claims[0].capacity if claims else counting[0].capacity if counting else 0, ghosts=counting)
    standing = [place for place in claims if place.capacity == line.capacity]
    used = sum(ghost.weight for ghost in counting) + sum(place.weight for place in standing if place.granted)
    blocked = False
    for place in standing:
        if place.granted:
            line.holding.append(place)
        elif not blocked and used + place.weight <= line.capacity:
            used += place.weight
            line.holding.append(place)
        else:
            blocked = True
            line.waiting.append(place)
    return line
