"""A queue as the listing of its parent tells it, and whom a waiter has to watch; who holds: `ordered_keys.queue`.

1. One that may skip the line takes a *slot* when it fits beside those who are granted; then it looks again. Whoever was
   granted before the slot was there is seen in that look, and whoever looks later sees the slot: if both do not fit,
   the slot is given back. Of two slots the one with the lower number counts. Whether a slot is kept does not stand in
   the listing: it may be about to be given back, for somebody's sake who is granted. So whoever would take a slot
   beside one counts both, the slot and those whose turn it would be without it; only of slots that are `settled` (their
   owner's data tells a token, see `unfair`) it is known that they stay, and that the others had to fit beside them.
2. A waiter lacks some room (its deficit). It watches as few claims as will do: the rest of those before it, all leaving
   together, would not make enough room. So it cannot be granted before one of the watched leaves, and no wake-up is
   missed. Among equals it watches the nearest: in a mutex that is its predecessor alone, with n permits the n nearest,
   and if they leave in order each release wakes one waiter. All readers behind a writer watch the writer.
3. A will without its claim is what is left of a hold that ended uncleanly; it counts as a tombstone does. They end by
   time, and nobody is woken.
4. A waiter is granted by the end of one claim, and need not look, if all that stands between them fits, that claim
   takes all of the capacity, leaves nothing behind, and has no slot, and no end note stands there. For once that claim
   is granted, nothing stands before it, nobody behind it can take a slot, and no tombstone is made. What remains to be
   known is that it was granted, and how it ended: see `handoff`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from ..ordered_keys import queue as ordered_keys
from ..ordered_keys.queue import capacity_of, fitting, orphans, total
from .paths import END_NOTE, SLOT, TOMBSTONE, WILL, Marker, QueueEntry, entry_of, in_order, marker_of


@dataclass(slots=True)
class NodeQueue:
    """One listing, read."""

    claims: list[QueueEntry] = field(default_factory=list)
    wills: list[Marker] = field(default_factory=list)
    tombstones: list[Marker] = field(default_factory=list)
    slots: dict[str, Marker] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """End notes; they keep nobody out."""

    @property
    def orphans(self) -> list[Marker]:
        """Wills of claims that are gone."""
        return orphans(self.wills, self.claims)

    @property
    def counting(self) -> list[Marker]:
        """The tombstones, and what takes up room as they do."""
        return [*self.tombstones, *self.orphans]

    @property
    def capacity(self) -> int:
        """That of the line; 0 if nothing of ours stands in it."""
        return capacity_of(self.claims, self.counting)

    def find(self, node: str) -> QueueEntry | None:
        """By its node, not by its owner: a claim that lapsed and came again has two, until the old one is deleted."""
        return next((entry for entry in self.claims if entry.node == node), None)


@dataclass(slots=True)
class Verdict:
    """How a claim stands. `fits`: it may take a slot."""

    granted: bool
    ahead: int = 0
    watch: list[str] = field(default_factory=list)
    capacity: int = 0
    """Set if the line has another capacity than the claim asks for."""
    fits: bool = False
    predecessor: PrecedingClaim | None = None


@dataclass(frozen=True, slots=True)
class PrecedingClaim:
    """Whose end a waiter needs to hear of in order to be granted without another look (rule 4)."""

    entry: QueueEntry


def line_of(children: Iterable[str]) -> NodeQueue:
    line = NodeQueue()
    for node in children:
        if node[:1] != "~":
            if (entry := entry_of(node)) is not None:
                line.claims.append(entry)
        elif node.startswith(END_NOTE):
            line.notes.append(node)
        elif (marker := marker_of(node)) is not None:
            if node.startswith(WILL):
                line.wills.append(marker)
            elif node.startswith(TOMBSTONE):
                line.tombstones.append(marker)
            elif node.startswith(SLOT):
                line.slots[marker.owner] = marker
    line.claims = in_order(line.claims)
    return line


def judge(line: NodeQueue, mine: QueueEntry, settled: Collection[str] = ()) -> Verdict:
    """How this claim of the line stands. `settled` are the owners of slots that are known to be kept."""
    capacity = mine.capacity
    tombstones = line.counting
    for standing in (line.capacity, *(marker.capacity for marker in tombstones)):
        if standing != capacity:
            return Verdict(False, capacity=standing)
    before, in_slots = _others(line, mine)
    used = total(tombstones) + total(in_slots)
    deficit = used + total(before, capacity) + mine.weight - capacity
    if deficit <= 0:
        return Verdict(True)
    watch = _fewest(line, [*in_slots, *before], deficit, capacity)
    verdict = Verdict(False, len(before) + len(in_slots) + len(tombstones), watch)
    if mine.fair:
        if len(watch) == 1 and not (tombstones or line.wills or line.slots or line.notes):
            verdict.predecessor = _predecessor(line, mine, watch[0])
    else:
        granted = fitting(before, capacity - _certain(line, settled), capacity)
        lacking = used + total(granted, capacity) + mine.weight - capacity
        verdict.fits = lacking <= 0
        verdict.watch = list(dict.fromkeys([*watch, *_fewest(line, [*in_slots, *granted], lacking, capacity)]))
    return verdict


def _predecessor(line: NodeQueue, mine: QueueEntry, node: str) -> PrecedingClaim | None:
    """Whether the end of this one node is enough (rule 4)."""
    claims, capacity = line.claims, mine.capacity
    at, of = next((at, entry) for at, entry in enumerate(claims) if entry.node == node)
    room = capacity
    for entry in claims[at + 1 :]:
        if entry.capacity not in (capacity, 0):
            return None
        room -= entry.weight or capacity
        if entry.node == mine.node:
            break
    if room < 0 or not (of.fair and of.plain) or (of.weight or capacity) != capacity:
        return None
    return PrecedingClaim(of)


def keeps_slot(line: NodeQueue, mine: QueueEntry, settled: Collection[str] = ()) -> bool:
    """Whether a slot that was taken may be kept (rule 1). `settled` as above."""
    own = line.slots.get(mine.owner)
    if own is None or line.capacity != mine.capacity:
        return False
    older = {owner: slot for owner, slot in line.slots.items() if (slot.number - own.number) & 0x80000000}
    line = replace(line, slots=older)  # whoever has a younger one has seen ours
    before, in_slots = _others(line, mine)
    granted = fitting(before, mine.capacity - _certain(line, settled), mine.capacity)
    used = total(line.counting) + total(in_slots) + total(granted, mine.capacity)
    return used + mine.weight <= mine.capacity


def _certain(line: NodeQueue, settled: Collection[str]) -> int:
    """What is taken out of turn for certain: by tombstones, and by slots that are kept."""
    kept = [entry for entry in line.claims if entry.owner in line.slots and entry.owner in settled]
    return total(line.counting) + total(kept)


def granted_of(line: NodeQueue, told: Collection[str] | None = None) -> set[str]:
    """The owners that hold: those of whom it is `told` (else those with slots), and whose turn it is beside them."""
    early = line.slots if told is None else told
    queue = ordered_keys.judge(line.claims, line.counting, lambda entry: entry.owner in early)
    return {entry.owner for entry in queue.holding}


def _others(line: NodeQueue, mine: QueueEntry) -> tuple[list[QueueEntry], list[QueueEntry]]:
    """Those before this claim, in order, and those that have slots."""
    before: list[QueueEntry] = []
    in_slots: list[QueueEntry] = []
    passed = False
    for entry in line.claims:
        if entry.node == mine.node:
            passed = True
        elif entry.owner in line.slots:
            in_slots.append(entry)
        elif not passed and entry.capacity in (mine.capacity, 0):
            before.append(entry)
    return before, in_slots


def _fewest(line: NodeQueue, leaving: list[QueueEntry], deficit: int, capacity: int) -> list[str]:
    """The nodes of as few as will do: all others together make less room than is lacking."""
    rest = total(leaving, capacity)
    watch = []
    nearest = reversed(leaving)
    for entry in sorted(nearest, key=lambda one: -(one.weight or capacity)):  # stable: of equals the nearest first
        if rest < deficit:
            break
        slot = line.slots.get(entry.owner)
        watch.append(entry.node if slot is None else slot.node)
        rest -= entry.weight or capacity
    return watch
