"""The rows of `holdfast_claim` and `holdfast_rate`, as both engines keep them. The reference decides what is granted.

1. A name's queue is a reference `Line`; `Place.rank` is the row's `place`. Rank 0 is the name's seat, whose row stays.
2. `crowded` (there are places behind the seat) is a column, written at some steps and stale between them. Quick
   statements and the survey of contended names look at it, so it is stale here exactly when it is stale there. The
   engines differ in one step: `exact` (PostgreSQL) says that a removal of a claim writes it, too.
3. Each method is one statement: it is carried out at one moment, and committed with its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast._core import gcra
from holdfast._core.line import GHOST, Ended, Line, Place
from holdfast.backends.execute import Entry, Moment, enter
from holdfast.backends.queue_backend import Taken
from holdfast.backends.relational.replies import EXPIRED, STANDS
from holdfast.model import Predecessor

from .batch import Claims, leave_all, look_all

R = TypeVar("R")

DAY_US = 24 * 3600 * 1_000_000
NULLABLE_AT = (2, 13, 15)
"""Columns of a survey: owner, state, note."""


@dataclass(slots=True)
class Slot:
    """One name: its queue, and the column `crowded` of its row at place 0."""

    line: Line
    crowded: bool = False

    @property
    def behind(self) -> bool:
        return any(place.rank > 0 for place in self.line.places)

    @property
    def hosts(self) -> Place | None:
        """The claim in the seat itself."""
        return next((place for place in self.line.places if place.rank == 0), None)

    def free(self, capacity: int, now: int) -> int:
        return capacity - sum(place.weight for place in self.line.places if place.occupies(now))


@dataclass(slots=True)
class SurveyRow:
    """One row of a survey."""

    name: str
    capacity: int
    place: Place
    now: int
    state: str
    """Empty: this row tells the note only, whatever else is in it."""
    note: str
    """Of a name that is unrecovered; else empty."""


def note_of(ended: Ended | None) -> str:
    """As the seat keeps it; empty if there is none."""
    return "" if ended is None else f"{ended.how}:{ended.token}:{ended.owner}"


def note_told(predecessor: Predecessor | None) -> str:
    """As the reply to a take has it."""
    return "" if predecessor is None else f"{predecessor.ended}:{predecessor.token}:{predecessor.owner}"


def words_to(place: Place) -> str:
    """What is told to the owner of a place that was granted."""
    return f"{place.owner} {place.token} {note_of(place.after) or '-'}"


def state_of(place: Place, now: int) -> str:
    if place.owner and now < place.expires + (place.delay if place.token else 0):
        return STANDS
    return EXPIRED if place.token and not place.evicted and not place.owner.startswith(GHOST) else ""


@dataclass(slots=True)
class LockTable:
    exact: bool
    seats: dict[str, Slot] = field(default_factory=dict)
    rates: dict[str, int] = field(default_factory=dict)

    # The reference's own view of it (`execute.Lines`)

    def load(self, name: str) -> Line:
        if name not in self.seats:
            self.seats[name] = Slot(Line(capacity=1))
        return self.seats[name].line

    def save(self, name: str, line: Line) -> None:
        last = -1
        for place in line.places:
            if place.rank < 0:
                place.rank = last + 1
            last = place.rank
        line.changed.clear()
        line.removed.clear()

    def names(self, prefix: str) -> Iterable[str]:
        return sorted(name for name in self.seats if name.startswith(prefix))

    def load_tat(self, name: str) -> int:
        return self.rates.get(name, 0)

    def save_tat(self, name: str, tat: int) -> None:
        self.rates[name] = tat

    # Statements

    def take(self, entries: Sequence[Entry], queue: bool, now: int) -> tuple[list[Taken], list[Place]]:
        """The reply, and everybody whom it promoted."""
        for entry in entries:
            self.load(entry.name).sweep(now)
        before = [
            (seat.free(entry.capacity, now), bool(seat.line.places), seat.line.find(entry.place.owner))
            for entry in entries
            for seat in [self.seats[entry.name]]
        ]
        taken, promoted = enter(self, entries, queue, Moment(now, now))
        if any(one.capacity is not None for one in taken):
            for entry, one in zip(entries, taken, strict=True):
                if one.capacity is not None:  # then it was looked for the first who waits
                    self.seats[entry.name].crowded = self.seats[entry.name].behind
            return taken, []
        refused = not queue and any(not one.token for one in taken)
        for entry, (free, occupied, mine) in zip(entries, before, strict=True):
            self.save(entry.name, self.seats[entry.name].line)
            self._note_crowded(entry, queue, refused, free, occupied, mine)
        return taken, [place for _, place in promoted]

    def _note_crowded(
        self, entry: Entry, queue: bool, refused: bool, free: int, occupied: bool, mine: Place | None
    ) -> None:
        """Write `crowded` where a take does (rule 2). `free`, `occupied` and `mine` are as it found them."""
        seat = self.seats[entry.name]
        new = mine is None or mine.evicted
        own = entry.place if mine is None or mine.evicted else mine
        placed = not new or queue or own.weight <= free or self.exact
        was_behind = occupied if new else own.rank > 0
        removed = not queue and not own.token
        if new and placed and occupied:
            seat.crowded = True
        if placed and free > 0:
            seat.crowded = seat.behind or (removed and was_behind)
        if (self.exact and removed) or (refused and new and own.token):
            seat.crowded = seat.behind

    def quick_take(self, entry: Entry, note: str, now: int) -> int:
        """The token, if nobody is in the seat or behind it, and it has this note; else 0."""
        seat = self.seats.get(entry.name)
        if seat is None or note_of(seat.line.last) != note:
            return 0
        return self.quick_enter(entry, now)

    def quick_enter(self, entry: Entry, now: int) -> int:
        """The token, if nobody is in the seat or behind it, whether the name has a seat or not; else 0."""
        self.load(entry.name)
        seat = self.seats[entry.name]
        if seat.hosts is not None or seat.crowded:
            return 0
        [taken], _ = self.take([entry], False, now)
        return taken.token

    def quick_release(self, name: str, owner: str, now: int) -> bool:
        """Let go of a hold in the seat, if nobody is behind it."""
        seat = self.seats.get(name)
        if seat is None or seat.crowded or (hold := seat.hosts) is None or hold.owner != owner or not hold.holds(now):
            return False
        seat.line.leave(hold, now)
        self.save(name, seat.line)
        return True

    def renew(self, name: str, owner: str, token: int, now: int) -> str:
        seat = self.seats.get(name)
        return "refused" if seat is None else self._changed(name, seat, seat.line.renew(owner, now, token))

    def release(self, name: str, owner: str, linger: int, now: int) -> tuple[bool, list[Place]]:
        return self._promoting(name, lambda line: line.release(owner, now, now, linger))

    def look_all(self, claims: Claims, wake: str, now: int) -> tuple[list[Taken | None], list[Place]]:
        """For names without a seat there is nothing to keep."""
        return self._each_seated(claims, lambda seated: look_all(self, seated, wake, now), None)

    def leave_all(self, claims: Claims, now: int) -> tuple[list[bool], list[Place]]:
        return self._each_seated(claims, lambda seated: leave_all(self, seated, now), False)

    def _each_seated(
        self, claims: Claims, change: Callable[[Claims], tuple[list[R], list[Place]]], other: R
    ) -> tuple[list[R], list[Place]]:
        seated = [claim for claim in claims if claim[0] in self.seats]
        replies, promoted = change(seated)
        told = iter(replies)
        for name, _ in seated:
            self.seats[name].crowded = self.seats[name].behind
        return [next(told) if name in self.seats else other for name, _ in claims], promoted

    def evict(self, name: str, token: int, now: int) -> tuple[bool, list[Place]]:
        return self._promoting(name, lambda line: line.evict(token, now, now))

    def recover(self, name: str, owner: str, token: int, now: int) -> bool:
        seat = self.seats.get(name)
        return seat is not None and seat.line.recovered(owner, token, now)

    def _promoting(self, name: str, change: Callable[[Line], tuple[bool, list[Place]]]) -> tuple[bool, list[Place]]:
        seat = self.seats.get(name)
        if seat is None:
            return False, []
        said, promoted = self._changed(name, seat, change(seat.line))
        seat.crowded = seat.behind
        return said, promoted

    def _changed(self, name: str, seat: Slot, reply: R) -> R:
        self.save(name, seat.line)
        return reply

    def allow(self, name: str, step: int, burst: int, cost: int, reserve: int, now: int) -> tuple[bool, int]:
        allowed, wait, tat = gcra.allow(self.load_tat(name), now, step, burst, cost, reserve)
        self.save_tat(name, tat)
        return allowed, wait

    def survey(self, first: str, last: str, now: int, contended: bool = False) -> Iterator[SurveyRow]:
        for name in sorted(name for name in self.seats if first <= name < last):
            seat = self.seats[name]
            if contended and not seat.crowded:
                continue
            note = note_of(seat.line.unrecovered)
            nobody = [] if seat.hosts is not None else [Place("", 0, True, 0, 0, 0, 0, 0, rank=0)]
            for place in [*nobody, *seat.line.places]:
                state = state_of(place, now)
                if state or (note and place.rank == 0):
                    yield SurveyRow(name, seat.line.capacity, place, now, state, note)

    def tidy(self, names: Iterable[str], now: int) -> list[Place]:
        """Promote where something is over, and drop seats that say nothing; everybody whom that promoted."""
        promoted: list[Place] = []
        for name in list(names):
            seat = self.seats[name]
            if not self.exact and self._says_nothing(seat, now):
                del self.seats[name]
                continue
            if any(place.gone(now) and (self.exact or place.rank > 0) for place in seat.line.places):
                promoted += self.evict(name, 0, now)[1]
            if self.exact and self._says_nothing(seat, now):
                del self.seats[name]
        return promoted

    @staticmethod
    def _says_nothing(seat: Slot, now: int) -> bool:
        hosted = seat.hosts
        empty = hosted is None or (hosted.gone(now) and not (hosted.robust and state_of(hosted, now) == EXPIRED))
        return empty and not seat.crowded and seat.line.unrecovered is None and seat.line.mark < now - DAY_US

    def tidy_rates(self, names: Callable[[str], bool], now: int) -> None:
        self.rates = {name: tat for name, tat in self.rates.items() if tat >= now or not names(name)}
