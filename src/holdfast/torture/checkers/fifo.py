"""FIFO: nobody was let in before a claim that certainly stood in line ahead of it.

Proven from times and acknowledgements alone, so that no unlucky delay looks like a bug:

1. A queue acknowledgement at time t with `until` shows that the claim stood in line at t, and that its place is kept
   until then. A later one before `until` shows the same place; any other may be a new place, at the end.
2. B overtook A if B was invoked after A stood in line, and returned granted while A's place was kept, and A returned
   later. For A had not been granted before B: both together exceed the capacity (only such pairs are judged). Where
   tokens say otherwise, two were granted at a time, which other checkers report.
3. B must be a fair claim. A must have been granted in the end: one that gave up may have been granted and given back.
4. A fault of the engine may cost a place: a place counts only between two such faults. A fault of a client does not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..history import FaultRecord, Operation
from .finding import Finding, who


@dataclass(slots=True)
class KeptPlace:
    """A place in line that was kept from `since` to `until`, when its owner had not been granted yet."""

    acquire: Operation
    since: int
    until: int


def check(operations: Iterable[Operation], faults: Iterable[FaultRecord]) -> Finding:
    """One violation for each claim that overtook another."""
    finding = Finding("fifo", why_not="no place in line was acknowledged while the engine was left alone")
    granted: dict[tuple[str, int, int], Operation] = {}
    acknowledged: dict[tuple[str, int, int], list[Operation]] = {}
    for operation in operations:
        if operation.verb == "acquire" and operation.outcome == "ok" and operation.returned is not None:
            granted[operation.client, operation.process, operation.seq] = operation
        elif operation.verb == "queued":
            acknowledged.setdefault((operation.client, operation.process, operation.of), []).append(operation)
    quiet = QuietPeriods(faults)
    places: dict[str, list[KeptPlace]] = {}
    for key, points in acknowledged.items():
        if (acquire := granted.get(key)) is not None:
            places.setdefault(acquire.name, []).extend(_places(acquire, points, quiet))
    comers: dict[str, list[Operation]] = {}
    for operation in granted.values():
        if operation.fair and operation.name in places:
            comers.setdefault(operation.name, []).append(operation)
    for name, kept in places.items():
        finding.judged += len(kept)
        _see_order(finding, name, kept, comers.get(name, []))
    return finding


class QuietPeriods:
    """The periods between faults of the engine's side, numbered. A time within a fault has no number."""

    def __init__(self, faults: Iterable[FaultRecord]) -> None:
        spans = sorted((fault.begin, fault.end) for fault in faults if fault.was_run and fault.client is None)
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in spans:
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def number(self, time: int) -> int | None:
        """The number of the period that a time is in; None within a fault."""
        number = bisect_right(self._begins, time)
        return None if number and time <= self._ends[number - 1] else number

    def end(self, number: int) -> int | None:
        """When the next fault begins, if there is one."""
        return self._begins[number] if number < len(self._begins) else None


def _places(acquire: Operation, points: list[Operation], quiet: QuietPeriods) -> Iterator[KeptPlace]:
    """Acknowledgements joined as far as they show one place."""
    assert acquire.returned is not None
    place: KeptPlace | None = None
    period: int | None = None
    for point in sorted(points, key=lambda point: point.invoked):
        number = quiet.number(point.invoked)
        if number is None or point.until <= point.invoked:
            continue  # an engine without a queue acknowledges that a claim waits, and keeps no place
        end = quiet.end(number)
        until = min(point.until, acquire.returned, point.until if end is None else end)
        if place is not None and number == period and point.invoked < place.until:
            place.until = max(place.until, until)
            continue
        if place is not None:
            yield place
        place, period = KeptPlace(acquire, point.invoked, until), number
    if place is not None:
        yield place


def _see_order(finding: Finding, name: str, places: list[KeptPlace], comers: list[Operation]) -> None:
    places.sort(key=lambda place: place.since)
    latest: dict[int, KeptPlace] = {}  # of each weight, the place ahead that is kept longest
    number = 0
    for comer in sorted(comers, key=lambda operation: operation.invoked):
        while number < len(places) and places[number].since < comer.invoked:
            place = places[number]
            best = latest.get(place.acquire.weight)
            if best is None or place.until > best.until:
                latest[place.acquire.weight] = place
            number += 1
        returned = comer.returned
        assert returned is not None
        for weight, place in latest.items():
            if weight + comer.weight > comer.capacity and returned < place.until:
                _see_who(finding, name, places[:number], comer, returned)
                break


def _see_who(finding: Finding, name: str, ahead: list[KeptPlace], comer: Operation, returned: int) -> None:
    """Report whom the claim overtook. A smaller token was granted earlier: that is a double grant, not overtaking."""
    for place in ahead:
        mine = place.acquire
        fits = mine.weight + comer.weight <= comer.capacity
        if not fits and returned < place.until and not 0 < mine.token < comer.token:
            early = (comer.invoked - place.since) / 1e6
            story = f"{who(comer)} was let in to {name!r} before {who(mine)}"
            story += f", which stood in line {early:.1f} ms before it asked"
            finding.broken(name, story, [mine, comer], returned)
            return
