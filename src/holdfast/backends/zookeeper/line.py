"""Who is granted, as everybody reads it off one listing; and whom a waiter has to watch.

1. A claim is granted when it and all claims before it fit into the capacity, together with seats and ghosts. What
   stands before a claim only ever becomes less, so a claim that was granted stays so: nobody has to write a grant down.
2. One that may skip the line takes a *seat* when it fits beside those who are granted; then it looks again. Whoever was
   granted before the seat was there is seen in that look, and whoever looks later sees the seat: if both do not fit,
   the seat is given back. Of two seats the one with the lower number counts. Whether a seat is kept does not stand in
   the listing: it may be about to be given back, for somebody's sake who is granted. So whoever would sit down beside
   one counts both, the seat and those whose turn it would be without it; only of seats that are `settled` (their
   owner's data tells a token, see `turns`) it is known that they stay, and that the others had to fit beside them.
3. A waiter lacks some room (its deficit). It watches as few claims as will do: the rest of those before it, all leaving
   together, would not make enough room. So it cannot be granted before one of the watched leaves, and no wake-up is
   missed. Among equals it watches the nearest: in a mutex that is its predecessor alone, with n permits the n nearest,
   and if they leave in order each release wakes one waiter. All readers behind a writer watch the writer.
4. The capacity of a line is that of its first claim; a claim with another one does not count, for it is about to leave.
5. A will without its claim is the trace of a hold that ended uncleanly; it occupies its weight, as a ghost does. They
   end by time, and nobody is woken.
6. An *heir* is granted by the end of one claim, and need not look: all that stands between them fits, that claim takes
   all of the capacity, leaves no trace, and was not seated out of turn. For once it is granted, nothing stands before
   it, nobody behind it can be seated, and no ghost is made. What remains to be known is that it was granted: see
   `handoff`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from .paths import GHOST, SEAT, WILL, Entry, Trace, entry_of, in_order, trace_of


@dataclass(slots=True)
class Picture:
    """One listing, read."""

    claims: list[Entry] = field(default_factory=list)
    wills: list[Trace] = field(default_factory=list)
    ghosts: list[Trace] = field(default_factory=list)
    seats: dict[str, Trace] = field(default_factory=dict)

    @property
    def orphans(self) -> list[Trace]:
        """Wills of claims that are gone."""
        owners = {entry.owner for entry in self.claims}
        return [will for will in self.wills if will.owner not in owners]

    @property
    def capacity(self) -> int:
        """That of the line; 0 if nothing of ours stands in it."""
        first = next((entry.capacity for entry in self.claims if entry.capacity), 0)
        return first or next((trace.capacity for trace in (*self.ghosts, *self.orphans)), 0)

    def find(self, node: str) -> Entry | None:
        """By its node, not by its owner: a claim that lapsed and came again has two, until the old one is deleted."""
        return next((entry for entry in self.claims if entry.node == node), None)


@dataclass(slots=True)
class Verdict:
    """How a claim stands. `fits`: it may take a seat."""

    granted: bool
    ahead: int = 0
    watch: list[str] = field(default_factory=list)
    capacity: int = 0
    """Set if the line has another capacity than the claim asks for."""
    fits: bool = False
    heir: Heir | None = None


@dataclass(frozen=True, slots=True)
class Heir:
    """What a waiter needs to know in order to be granted without another look (rule 6)."""

    of: Entry
    first: bool
    """Nothing stands before that claim: it is granted."""


def picture_of(children: Iterable[str]) -> Picture:
    picture = Picture()
    for node in children:
        if node[:1] != "~":
            if (entry := entry_of(node)) is not None:
                picture.claims.append(entry)
        elif (trace := trace_of(node)) is not None:
            if node.startswith(WILL):
                picture.wills.append(trace)
            elif node.startswith(GHOST):
                picture.ghosts.append(trace)
            elif node.startswith(SEAT):
                picture.seats[trace.owner] = trace
    picture.claims = in_order(picture.claims)
    return picture


def judge(picture: Picture, mine: Entry, settled: Collection[str] = ()) -> Verdict:
    """How this claim of the line stands. `settled` are the owners of seats that are known to be kept."""
    capacity = mine.capacity
    traces = (*picture.ghosts, *picture.orphans)
    for standing in (picture.capacity, *(trace.capacity for trace in traces)):
        if standing != capacity:
            return Verdict(False, capacity=standing)
    before, seated = _others(picture, mine)
    used = sum(trace.weight for trace in traces) + sum(weight for _, weight in seated)
    deficit = used + sum(weight for _, weight in before) + mine.weight - capacity
    if deficit <= 0:
        return Verdict(True)
    watch = _fewest([*seated, *before], deficit)
    verdict = Verdict(False, len(before) + len(seated) + len(traces), watch)
    if mine.fair:
        if len(watch) == 1 and not (traces or picture.wills or picture.seats):
            verdict.heir = _heir(picture, mine, watch[0])
    else:
        granted = _granted(before, capacity - _certain(picture, settled))
        lacking = used + sum(weight for _, weight in granted) + mine.weight - capacity
        verdict.fits = lacking <= 0
        verdict.watch = list(dict.fromkeys([*watch, *_fewest([*seated, *granted], lacking)]))
    return verdict


def _heir(picture: Picture, mine: Entry, node: str) -> Heir | None:
    """Whether the end of this one node is enough (rule 6)."""
    claims, capacity = picture.claims, mine.capacity
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
    return Heir(of, at == 0)


def keeps_seat(picture: Picture, mine: Entry, settled: Collection[str] = ()) -> bool:
    """Whether a seat that was taken may be kept (rule 2). `settled` as above."""
    own = picture.seats.get(mine.owner)
    if own is None or picture.capacity != mine.capacity:
        return False
    older = {owner: seat for owner, seat in picture.seats.items() if (seat.number - own.number) & 0x80000000}
    picture = replace(picture, seats=older)  # whoever has a younger one has seen ours
    before, seated = _others(picture, mine)
    used = sum(trace.weight for trace in (*picture.ghosts, *picture.orphans)) + sum(weight for _, weight in seated)
    granted = _granted(before, mine.capacity - _certain(picture, settled))
    return used + sum(weight for _, weight in granted) + mine.weight <= mine.capacity


def _certain(picture: Picture, settled: Collection[str]) -> int:
    """What is taken out of turn for certain: by traces, and by seats that are kept."""
    seats = (entry.weight for entry in picture.claims if entry.owner in picture.seats and entry.owner in settled)
    return sum(trace.weight for trace in (*picture.ghosts, *picture.orphans)) + sum(seats)


def granted_of(picture: Picture, told: Collection[str] | None = None) -> set[str]:
    """The owners that hold: those of whom it is `told` (else those with seats), and whose turn it is beside them."""
    capacity = picture.capacity or 1
    counted = [(entry.owner, entry.weight or capacity) for entry in picture.claims if entry.capacity in (capacity, 0)]
    out_of_turn = {owner: weight for owner, weight in counted if owner in (picture.seats if told is None else told)}
    used = sum(trace.weight for trace in (*picture.ghosts, *picture.orphans)) + sum(out_of_turn.values())
    in_turn = _granted([one for one in counted if one[0] not in out_of_turn], capacity - used)
    return {owner for owner, _ in in_turn} | set(out_of_turn)


def _others(picture: Picture, mine: Entry) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Nodes and weights of those before this claim, in order, and of those that are seated."""
    seats = picture.seats
    before: list[tuple[str, int]] = []
    seated: list[tuple[str, int]] = []
    passed = False
    for entry in picture.claims:
        if entry.node == mine.node:
            passed = True
        elif entry.owner in seats:
            seated.append((seats[entry.owner].node, entry.weight))
        elif not passed and entry.capacity in (mine.capacity, 0):
            before.append((entry.node, entry.weight or mine.capacity))
    return before, seated


def _granted(line: list[tuple[str, int]], free: int) -> list[tuple[str, int]]:
    granted = []
    for one in line:
        free -= one[1]
        if free < 0:
            break
        granted.append(one)
    return granted


def _fewest(leaving: list[tuple[str, int]], deficit: int) -> list[str]:
    """As few as will do: all others together make less room than is lacking."""
    rest = sum(weight for _, weight in leaving)
    watch = []
    nearest = reversed(leaving)
    for node, weight in sorted(nearest, key=lambda one: -one[1]):  # stable: of equals the nearest first
        if rest < deficit:
            break
        watch.append(node)
        rest -= weight
    return watch
