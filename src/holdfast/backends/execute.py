"""What a server does for each request of `queue_backend`, on lines that it loads and saves.

`Lines` is where an engine keeps them: a dict, or a table inside a transaction. Whoever calls `carry_out` makes it
atomic. Times are integers in microseconds: `Moment.now` on the engine's clock (validity), `Moment.clock` calendar
time (the lower bound of tokens).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, overload

from .._core import gcra
from .._core.line import GHOST, Line, Place
from ..model import Claim, ClaimView, LockView, Predecessor
from .queue_backend import (
    Allow,
    Evict,
    Push,
    QueueReply,
    QueueRequest,
    Recover,
    Release,
    Renew,
    Survey,
    Take,
    Taken,
    patience,
)

SECOND_US = 1_000_000


@dataclass(slots=True)
class Moment:
    """When, and on whose behalf, a verb is carried out. `wake` is where a push reaches the asker."""

    now: int
    clock: int
    wake: str = ""
    host: str = ""
    pid: int = 0


class Lines(Protocol):
    """Where an engine keeps its lines."""

    def load(self, name: str) -> Line: ...

    def save(self, name: str, line: Line) -> None: ...

    def names(self, prefix: str) -> Iterable[str]: ...

    def load_tat(self, name: str) -> int: ...

    def save_tat(self, name: str, tat: int) -> None: ...


def us(seconds: float) -> int:
    return int(seconds * SECOND_US)


@overload
def carry_out(lines: Lines, request: Take, at: Moment) -> tuple[list[Taken], list[tuple[str, Place]]]: ...


@overload
def carry_out(lines: Lines, request: QueueRequest, at: Moment) -> tuple[QueueReply, list[tuple[str, Place]]]: ...


def carry_out(lines: Lines, request: QueueRequest, at: Moment) -> tuple[QueueReply, list[tuple[str, Place]]]:
    """Answers with the reply, and the places that it promoted, each with its name."""
    match request:
        case Take():
            return _take(lines, request, at)
        case Renew(claims=claims):
            said = []
            for claim in claims:
                line = lines.load(claim.spec.name)
                said.append(line.renew(claim.owner, at.now, claim.token))
                lines.save(claim.spec.name, line)
            return said, []
        case Release(claim=claim, linger=linger):
            name = claim.spec.name
            line = lines.load(name)
            held, promoted = line.release(claim.owner, at.now, at.clock, us(linger))
            lines.save(name, line)
            return held, [(name, place) for place in promoted]
        case Survey(prefix=prefix, exact=exact):
            names = [prefix] if exact else lines.names(prefix)
            views = [survey_line(name, lines.load(name), at.now) for name in names]
            return [view for view in views if view is not None], []
        case Evict(name=name, token=token):
            line = lines.load(name)
            found, promoted = line.evict(token, at.now, at.clock)
            lines.save(name, line)
            return found, [(name, place) for place in promoted]
        case Recover(claim=claim):
            name = claim.spec.name
            line = lines.load(name)
            held = line.recovered(claim.owner, claim.token, at.now)
            lines.save(name, line)
            return held, []
        case Allow(name=name):
            ok, wait, tat = gcra.allow(
                lines.load_tat(name),
                at.now,
                us(request.interval),
                request.burst,
                request.cost,
                us(request.reserve),
            )
            lines.save_tat(name, tat)
            return (ok, wait / SECOND_US), []
    raise TypeError(f"not a verb: {request!r}")


class Entry(NamedTuple):
    """A claim that enters the line of a name, which is to have this capacity."""

    name: str
    place: Place
    capacity: int


def _take(lines: Lines, request: Take, at: Moment) -> tuple[list[Taken], list[tuple[str, Place]]]:
    entries = [Entry(claim.spec.name, place_of(claim, at), claim.spec.capacity) for claim in request.claims]
    return enter(lines, entries, request.queue, at)


def enter(
    lines: Lines, entries: Sequence[Entry], queue: bool, at: Moment
) -> tuple[list[Taken], list[tuple[str, Place]]]:
    """Enter all these lines in one step, or only find out."""
    loaded = [lines.load(entry.name) for entry in entries]
    other = [line.mismatch(entry.capacity, at.now) for entry, line in zip(entries, loaded, strict=True)]
    if any(capacity is not None for capacity in other):
        return [Taken(0, capacity=capacity) for capacity in other], []
    promoted: list[tuple[str, Place]] = []
    mine: list[Place | None] = []
    found = [line.find(entry.place.owner) for entry, line in zip(entries, loaded, strict=True)]
    before = [place is not None and not place.evicted for place in found]
    for entry, line in zip(entries, loaded, strict=True):
        place, others = line.take(entry.place, entry.capacity, at.now, at.clock, queue)
        promoted += [(entry.name, other_place) for other_place in others]
        mine.append(place)
    if not queue and None in mine:  # all or none
        for entry, line, place, old in zip(entries, loaded, mine, before, strict=True):
            if place is not None and not old:
                _, others = line.release(entry.place.owner, at.now, at.clock, told=False)
                promoted += [(entry.name, other_place) for other_place in others]
        mine = [None] * len(entries)
    taken = []
    for entry, line, place in zip(entries, loaded, mine, strict=True):
        if place is None or place.token:
            predecessor = None if line.last is None or place is None else line.last.as_predecessor()
            taken.append(Taken(place.token if place else 0, predecessor=predecessor))
        else:
            look_again = line.look_again(place, at.now) / SECOND_US
            taken.append(Taken(0, look_again, line.ahead(place, at.now), mark=line.mark))
        lines.save(entry.name, line)
    return taken, promoted


def place_of(claim: Claim, at: Moment) -> Place:
    """A claim as it enters the line."""
    spec = claim.spec
    return Place(
        owner=claim.owner,
        weight=spec.weight,
        fair=spec.fair,
        ttl=us(spec.ttl),
        patience=us(patience(spec)),
        delay=us(spec.lock_delay),
        since=at.now,
        expires=at.now,
        wake=at.wake,
        actor=claim.actor,
        mode=spec.mode,
        host=at.host,
        pid=at.pid,
        robust=spec.robust,
    )


def push_to(place: Place) -> Push:
    """What is told to the owner of a place that was granted."""
    return Push(place.token, None if place.after is None else place.after.as_predecessor())


def survey_line(name: str, line: Line, now: int) -> LockView | None:
    """A line as others see it; None if nothing stands in it."""
    standing = [place for place in line.places if place.counts(now) and not place.gone(now)]
    unrecovered = _left_unrecovered(line, now)
    if not standing and unrecovered is None:
        return None
    return LockView(
        name,
        line.capacity if standing else 0,
        tuple(_view(place, now) for place in standing if place.token),
        tuple(_view(place, now) for place in standing if not place.token),
        unrecovered,
    )


def _left_unrecovered(line: Line, now: int) -> Predecessor | None:
    """Of a line that nobody sweeps: a look writes nothing."""
    seen = replace(line, places=list(line.places), changed=[], removed=[])
    seen.sweep(now)
    return None if seen.unrecovered is None else seen.unrecovered.as_predecessor()


def _view(place: Place, now: int) -> ClaimView:
    return ClaimView(
        owner=place.owner.removeprefix(GHOST),
        token=place.token or None,
        weight=place.weight,
        host=place.host,
        pid=place.pid,
        since=place.since / SECOND_US,
        remaining=max(0, place.expires - now) / SECOND_US,
        actor=place.actor,
        mode=place.mode,
        live=not place.token or (place.holds(now) and not place.owner.startswith(GHOST)),
        age=max(0, now - place.since) / SECOND_US,
    )
