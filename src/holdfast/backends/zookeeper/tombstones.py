"""What outlives a hold: ghosts, and the wills that become ghosts. They are persistent nodes, for a session may be gone.

1. A holder with a `lock_delay` writes its will before it holds. A clean release deletes it with the claim, in one step.
   A will without its claim means that the hold ended uncleanly, nobody knows when: whoever sees it first makes it a
   ghost, whose time begins then.
2. A ghost keeps the name closed for its length from when it was made, on the server's calendar. Whoever finds one that
   is over deletes it.
3. Nobody is woken by a ghost's end: who waits for one looks again by its own clock.
4. Nobody may ever come for a name again. So whoever may leave something behind looks after some other names, in the
   background: after four times as many as it has taken, so that less stays than is added.
"""

from __future__ import annotations

from ..._core.flow import NOW, RANDOM, Call, Flow
from ...errors import HoldfastError
from ...model import LockSpec
from .error_mapping import refused
from .line import Picture, picture_of
from .ops import EXISTS, NO_NODE, Create, Delete, Exists, Failure, List, Multi, Op
from .paths import CLOCK, RATES, Trace, ghost_of
from .places import Place
from .requests import Batch
from .tree import Tree

CHANGED_S = -1.0
A_MOMENT_S = 0.002
"""The server counts in milliseconds; look when one more has passed."""
SWEEP_EVERY_COUNT = 16
"""Claims that may leave something behind, of one coordinator: with the first, and so many later, names are swept."""
SWEPT_COUNT = 64


class Tombstones:
    def __init__(self, tree: Tree, timeout: float) -> None:
        self.tree = tree
        self._timeout = timeout
        self._count = 0

    def due(self, spec: LockSpec) -> bool:
        """Whether names are to be swept, now that this is taken."""
        if not (spec.hold_at_least or spec.lock_delay):
            return False
        self._count += 1
        return self._count % SWEEP_EVERY_COUNT == 1

    def sweep(self, now: int) -> Flow[None]:
        """Some names of the namespace, at the server's time `now`: what is over, and nobody came for, is removed."""
        try:
            [listed] = yield Call(Batch((List(self.tree.root),)), self._timeout)
            steps = [step for step in (listed[0] if listed else ()) if step not in (RATES, CLOCK)]
            chance: float = yield RANDOM
            first = int(chance * len(steps))
            parents = [self.tree.names + step for step in (steps[first:] + steps[:first])[:SWEPT_COUNT]]
            if not parents:
                return
            listings = yield Call(Batch(tuple(map(List, parents))), self._timeout)
            pictures = [picture_of(found[0]) if found else Picture() for found in listings]
            orphans = [
                self.make_tombstone(parent, will)
                for parent, picture in zip(parents, pictures, strict=True)
                for will in picture.orphans
            ]
            ghosts = [
                (f"{parent}/{ghost.node}", ghost.length)
                for parent, picture in zip(parents, pictures, strict=True)
                for ghost in picture.ghosts
            ]
            stats = (yield Call(Batch([Exists(path) for path, _ in ghosts]), self._timeout)) if ghosts else []
            over = [
                Delete(path)
                for (path, length), stat in zip(ghosts, stats, strict=True)
                if stat and stat.ctime + length * 1000 <= now
            ]
            if orphans or over:
                yield Call(Batch([*orphans, *over]), self._timeout)
        except HoldfastError:
            return  # another one, another time

    def clear(self, picture: Picture, place: Place, timeout: float) -> Flow[float]:
        """Make ghosts of orphaned wills, remove ghosts that are over. In how many seconds the next one will be over;
        0 if there is none; `CHANGED_S` if the line has to be listed again."""
        if orphans := picture.orphans:
            for will in orphans:
                yield Call(Batch((self.make_tombstone(place.parent, will),), place), timeout)
            return CHANGED_S
        if not picture.ghosts:
            return 0.0
        paths = [f"{place.parent}/{ghost.node}" for ghost in picture.ghosts]
        answers = yield Call(Batch(tuple(map(Exists, paths)), place), timeout)
        if answers is None or not all(answers):
            return CHANGED_S
        now: int = place.server_time((yield NOW))
        lefts: list[float] = [
            stat.ctime / 1000 + ghost.length - now / 1000 for stat, ghost in zip(answers, picture.ghosts, strict=True)
        ]
        if over := [path for path, left in zip(paths, lefts, strict=True) if left <= 0]:
            yield Call(Batch(tuple(map(Delete, over)), place), timeout)
            return CHANGED_S
        return min(lefts) + A_MOMENT_S

    def write_will(self, place: Place, timeout: float) -> Flow[bool]:
        """Before it holds. It counts as written once that was answered; False if the claim is not there any more."""
        if place.willed:
            return True
        place.will = True
        will = Create(place.will_path, place.about, self.tree.acl)
        [written] = (yield Call(Batch((will,), place), timeout)) or [None]
        if written is None or (isinstance(written, Failure) and written.code == NO_NODE):
            return False
        if isinstance(written, Failure) and written.code != EXISTS:  # it is there, if the first answer was lost
            raise refused(written, f"writing the lock_delay of {place.claim.spec.name!r}")
        place.willed = True
        return True

    def make_tombstone(self, parent: str, will: Trace) -> Multi:
        """An orphaned will becomes a ghost: in one step, so that only one is made of it."""
        ghost = ghost_of(will.owner, will.weight, will.capacity, will.length)
        return Multi((Delete(f"{parent}/{will.node}"), Create(f"{parent}/{ghost}", b"", self.tree.acl)))

    def delete_claim(self, place: Place, linger: float) -> Flow[bool]:
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
    spec, owner = place.claim.spec, place.claim.owner
    ops: list[Op] = []
    if linger:
        data = place.confirmation(place.granted)
        ops.append(Create(f"{place.parent}/{ghost_of(owner, spec.weight, spec.capacity, linger)}", data, acl))
    if place.will:
        ops.append(Delete(place.will_path))
    if place.seat:
        ops.append(Delete(place.seat))
    return [*ops, Delete(place.path)]
