"""What outlives a hold: tombstones, and the wills that become tombstones. They are persistent nodes.

1. A holder with a `lock_delay` writes its will before it holds. A clean release deletes it with the claim, in one step.
   A will without its claim means that the hold ended uncleanly, nobody knows when: whoever sees it first makes it a
   tombstone, whose time begins then.
2. A tombstone keeps the name closed for its length from when it was made, on the server's calendar. Whoever finds one
   that is over deletes it.
3. Nobody is woken by a tombstone's end: who waits for one looks again by its own clock.
4. Nobody may ever come for a name again. So whoever may leave something behind looks after some other names, in the
   background: after four times as many as it has taken, so that less stays than is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, RANDOM, Call, Flow
from ...errors import HoldfastError
from ...model import LockSpec
from .claim_state import ClaimState
from .end_notes import REMEMBERED_S, expiry, read_note, removals
from .error_mapping import refused
from .ops import EXISTS, NO_NODE, Answer, Create, Delete, Exists, Failure, List, Multi, Op, Read
from .paths import CLOCK, RATES, Marker, tombstone_of
from .queue import NodeQueue, line_of
from .requests import Batch, node_read
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
        if spec.renew and not (spec.hold_at_least or spec.lock_delay or spec.robust):
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
            lines = [line_of(found[0]) if found else NodeQueue() for found in listings]
            orphans = [
                self.make_tombstone(parent, will)
                for parent, line in zip(parents, lines, strict=True)
                for will in line.orphans
            ]
            tombstones = [
                (f"{parent}/{tombstone.node}", tombstone.length)
                for parent, line in zip(parents, lines, strict=True)
                for tombstone in line.tombstones
            ]
            stats = (yield Call(Batch([Exists(path) for path, _ in tombstones]), self._timeout)) if tombstones else []
            over = [
                Delete(path)
                for (path, length), stat in zip(tombstones, stats, strict=True)
                if stat and stat.ctime + length * 1000 <= now
            ]
            over += yield from self._forgotten(parents, lines, now)
            if orphans or over:
                yield Call(Batch([*orphans, *over]), self._timeout)
        except HoldfastError:
            return  # another one, another time

    def _forgotten(self, parents: Sequence[str], lines: Sequence[NodeQueue], now: int) -> Flow[list[Delete]]:
        """End notes that have been there for long enough, and need nobody to put things right."""
        paths = [f"{parent}/{note}" for parent, line in zip(parents, lines, strict=True) for note in line.notes]
        answers = (yield Call(Batch([Read(path) for path in paths]), self._timeout)) if paths else []
        read = [(path, node_read(answer)) for path, answer in zip(paths, answers, strict=True)]
        old = [(path, node[0]) for path, node in read if node and node[1].ctime + REMEMBERED_S * 1000 <= now]
        return [Delete(path) for path, data in old if (note := read_note(path, data)) is not None and not note.robust]

    def clear(self, line: NodeQueue, state: ClaimState, timeout: float) -> Flow[float]:
        """Make tombstones of orphaned wills, and remove those that are over. In how many seconds the next one will be;
        0 if there is none; `CHANGED_S` if the line has to be listed again."""
        if orphans := line.orphans:
            for will in orphans:
                yield Call(Batch((self.make_tombstone(state.parent, will),), state), timeout)
            return CHANGED_S
        if not line.tombstones:
            return 0.0
        paths = [f"{state.parent}/{tombstone.node}" for tombstone in line.tombstones]
        answers = yield Call(Batch(tuple(map(Exists, paths)), state), timeout)
        if answers is None or not all(answers):
            return CHANGED_S
        now: int = state.server_time((yield NOW))
        lefts: list[float] = [
            stat.ctime / 1000 + tombstone.length - now / 1000
            for stat, tombstone in zip(answers, line.tombstones, strict=True)
        ]
        if over := [path for path, left in zip(paths, lefts, strict=True) if left <= 0]:
            yield Call(Batch(tuple(map(Delete, over)), state), timeout)
            return CHANGED_S
        return min(lefts) + A_MOMENT_S

    def write_will(self, state: ClaimState, timeout: float) -> Flow[bool]:
        """Before it holds. It counts as written once that was answered; False if the claim is not there any more."""
        if state.willed:
            return True
        state.will = True
        will = Create(state.will_path, state.about, self.tree.acl)
        [written] = (yield Call(Batch((will,), state), timeout)) or [None]
        if written is None or (isinstance(written, Failure) and written.code == NO_NODE):
            return False
        if isinstance(written, Failure) and written.code != EXISTS:  # it is there, if the first answer was lost
            raise refused(written, f"writing the lock_delay of {state.claim.spec.name!r}")
        state.willed = True
        return True

    def make_tombstone(self, parent: str, will: Marker) -> Multi:
        """An orphaned will becomes a tombstone: in one step, so that only one is made of it."""
        tombstone = tombstone_of(will.owner, will.weight, will.capacity, will.length)
        return Multi((Delete(f"{parent}/{will.node}"), Create(f"{parent}/{tombstone}", b"", self.tree.acl)))

    def delete_claim(self, state: ClaimState, linger: float, is_over: bool) -> Flow[bool]:
        """Let go of a claim and of all that stands with it, in one step; a tombstone may stay for a while."""
        ops = ending(state, linger, self.tree.acl, is_over)
        answers = yield Call(Batch((Multi(ops),), state, leaving=True), self._timeout)
        if answers is None:
            return False
        if not isinstance(answers[0], Failure):
            return True
        notes = [] if is_over else removals(state)
        answers = yield Call(Batch(ops[len(notes) :], state), self._timeout)  # something was gone before: one by one
        deleted = is_deleted(answers, state)
        if notes and (deleted or not state.granted):  # else it was ended by somebody else, and that is remembered
            yield Call(Batch(notes, state), self._timeout)
        return deleted


def is_deleted(answers: Sequence[Answer] | None, state: ClaimState) -> bool:
    """Whether the last of these operations has deleted its node; False if it was not there. Raises what refused it."""
    last = answers[-1] if answers else None
    if isinstance(last, Failure) and last.code != NO_NODE:
        raise refused(last, f"releasing {state.claim.spec.name!r}")
    return bool(last)


def ending(state: ClaimState, linger: float, acl: bytes, is_over: bool = False) -> list[Op]:
    """What ends a claim. `is_over`: its hold, if it had one, has ended by time."""
    spec, owner = state.claim.spec, state.claim.owner
    ops: list[Op] = expiry(state, acl) if is_over else removals(state)
    if linger:
        data = state.confirmation(state.granted)
        ops.append(Create(f"{state.parent}/{tombstone_of(owner, spec.weight, spec.capacity, linger)}", data, acl))
    if state.will:
        ops.append(Delete(state.will_path))
    if state.slot:
        ops.append(Delete(state.slot))
    return [*ops, Delete(state.path)]
