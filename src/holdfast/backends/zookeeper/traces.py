"""What outlives a hold: ghosts, and the wills that become ghosts. They are persistent nodes, for a session may be gone.

1. A holder with a `lock_delay` writes its will before it holds. A clean release deletes it with the claim, in one step.
   A will without its claim means that the hold ended uncleanly, nobody knows when: whoever sees it first makes it a
   ghost, whose time begins then.
2. A ghost keeps the name closed for its length from when it was made, on the server's calendar. Whoever finds one that
   is over deletes it.
3. Nobody is woken by a ghost's end: who waits for one looks again by its own clock.
"""

from __future__ import annotations

from ..._core.flow import NOW, Call, Flow
from .line import Picture
from .ops import Create, Delete, Exists, Failure, Multi, Op
from .paths import Trace, ghost_of
from .places import Place
from .requests import Batch
from .tree import Tree

CHANGED = -1.0
A_MOMENT = 0.002
"""The server counts in milliseconds; look when one more has passed."""


class Traces:
    def __init__(self, tree: Tree, timeout: float) -> None:
        self.tree = tree
        self._timeout = timeout

    def clear(self, picture: Picture, place: Place, timeout: float) -> Flow[float]:
        """Make ghosts of orphaned wills, remove ghosts that are over. In how many seconds the next one will be over;
        0 if there is none; `CHANGED` if the line has to be listed again."""
        if orphans := picture.orphans:
            for will in orphans:
                yield Call(Batch((self.raise_ghost(place.parent, will),), place), timeout)
            return CHANGED
        if not picture.ghosts:
            return 0.0
        paths = [f"{place.parent}/{ghost.node}" for ghost in picture.ghosts]
        answers = yield Call(Batch(tuple(map(Exists, paths)), place), timeout)
        if answers is None or not all(answers):
            return CHANGED
        now: int = place.server_time((yield NOW))
        lefts: list[float] = [
            stat.ctime / 1000 + ghost.length - now / 1000 for stat, ghost in zip(answers, picture.ghosts, strict=True)
        ]
        if over := [path for path, left in zip(paths, lefts, strict=True) if left <= 0]:
            yield Call(Batch(tuple(map(Delete, over)), place), timeout)
            return CHANGED
        return min(lefts) + A_MOMENT

    def raise_ghost(self, parent: str, will: Trace) -> Multi:
        """An orphaned will becomes a ghost: in one step, so that only one is made of it."""
        ghost = ghost_of(will.owner, will.weight, will.capacity, will.length)
        return Multi((Delete(f"{parent}/{will.node}"), Create(f"{parent}/{ghost}", b"", self.tree.acl)))

    def bury(self, place: Place, linger: float) -> Flow[bool]:
        """Let go of a claim and of all that stands with it, in one step; a ghost may stay for a while."""
        ops = self.ending(place, linger)
        answers = yield Call(Batch((Multi(ops),), place, leaving=True), self._timeout)
        if answers is None:
            return False
        if not isinstance(answers[0], Failure):
            return True
        answers = yield Call(Batch(ops, place), self._timeout)  # something of it was gone before: one by one
        return answers is not None and answers[-1] is True

    def ending(self, place: Place, linger: float) -> list[Op]:
        """What ends a claim: the deletion of its node comes last."""
        return ending(place, linger, self.tree.acl)


def ending(place: Place, linger: float, acl: bytes) -> list[Op]:
    ask, owner = place.claim.ask, place.claim.owner
    ops: list[Op] = []
    if linger:
        data = place.confirmation(place.granted)
        ops.append(Create(f"{place.parent}/{ghost_of(owner, ask.weight, ask.capacity, linger)}", data, acl))
    if place.will:
        ops.append(Delete(place.will_path))
    if place.seat:
        ops.append(Delete(place.seat))
    return [*ops, Delete(place.path)]
