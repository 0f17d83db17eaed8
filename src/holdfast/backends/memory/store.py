"""The verbs of `backends.line`, carried out on lines in memory: the reference for what an engine must do.

A store knows no time of its own: each request comes with the engine's time (`now`) and calendar time (`clock`), in
microseconds. So the same store serves real threads, a fake clock in tests, and the simulator's engines.
"""

from __future__ import annotations

from typing import Any

from ..._core import gcra
from ..._core.line import GHOST, Line, Place
from ...model import Claim, ClaimView, LockView
from ..line import Allow, Evict, Release, Renew, Survey, Take, Taken, patience

SECOND = 1_000_000


def us(seconds: float) -> int:
    return int(seconds * SECOND)


def place_of(claim: Claim, wake: str, now: int, host: str, pid: int) -> Place:
    """A claim as it enters the line."""
    ask = claim.ask
    return Place(
        owner=claim.owner,
        weight=ask.weight,
        fair=ask.fair,
        ttl=us(ask.ttl),
        patience=us(patience(claim)),
        delay=us(ask.lock_delay),
        since=now,
        expires=now,
        wake=wake,
        actor=claim.actor,
        mode=ask.mode,
        host=host,
        pid=pid,
    )


def view_of(place: Place, now: int) -> ClaimView:
    return ClaimView(
        owner=place.owner.removeprefix(GHOST),
        token=place.token or None,
        weight=place.weight,
        host=place.host,
        pid=place.pid,
        since=place.since / SECOND,
        remaining=max(0, place.expires - now) / SECOND,
        actor=place.actor,
        mode=place.mode,
    )


def survey_line(name: str, line: Line, now: int) -> LockView | None:
    """A line as others see it; None if nothing stands in it."""
    standing = [place for place in line.places if not place.gone(now) and place.counts(now)]
    if not standing:
        return None
    return LockView(
        name,
        line.capacity,
        tuple(view_of(place, now) for place in standing if place.token),
        tuple(view_of(place, now) for place in standing if not place.token),
    )


class MemoryStore:
    """All lines of one engine. `carry_out` answers with the reply and the places that were promoted by it."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.tats: dict[str, int] = {}
        self.marks: dict[str, int] = {}
        """The last token of names without a line: what an engine forgets last."""

    def carry_out(
        self, request: Any, now: int, clock: int, wake: str = "", host: str = "", pid: int = 0
    ) -> tuple[Any, list[Place]]:
        match request:
            case Take():
                return self._take(request, now, clock, wake, host, pid)
            case Renew(claims=claims):
                return [self._line(claim.ask.name).renew(claim.owner, now) for claim in claims], []
            case Release(claim=claim, linger=linger):
                line = self._line(claim.ask.name)
                held, promoted = line.release(claim.owner, now, clock, us(linger))
                self._settle(claim.ask.name, line)
                return held, promoted
            case Survey(prefix=prefix):
                names = sorted(name for name in self.lines if name.startswith(prefix))
                views = [survey_line(name, self.lines[name], now) for name in names]
                return [view for view in views if view is not None], []
            case Evict(name=name, token=token):
                return self._line(name).evict(token, now, clock)
            case Allow():
                return self._allow(request, now), []
        raise TypeError(f"not a verb: {request!r}")

    def _take(
        self, request: Take, now: int, clock: int, wake: str, host: str, pid: int
    ) -> tuple[list[Taken], list[Place]]:
        claims = request.claims
        lines = [self._line(claim.ask.name) for claim in claims]
        other = [line.mismatch(claim.ask.capacity, now) for claim, line in zip(claims, lines, strict=True)]
        if any(capacity is not None for capacity in other):
            return [Taken(0, capacity=capacity) for capacity in other], []
        taken: list[Taken] = []
        promoted: list[Place] = []
        mine: list[Place | None] = []
        for claim, line in zip(claims, lines, strict=True):
            asked = place_of(claim, wake, now, host, pid)
            place, others = line.take(asked, claim.ask.capacity, now, clock, request.queue)
            promoted += others
            mine.append(place)
        if not request.queue and None in mine:  # all or none
            for claim, line, place in zip(claims, lines, mine, strict=True):
                if place is not None:
                    promoted += line.release(claim.owner, now, clock)[1]
            mine = [None] * len(claims)
        for claim, line, place in zip(claims, lines, mine, strict=True):
            if place is None:
                taken.append(Taken(0))
            elif place.token:
                taken.append(Taken(place.token))
            else:
                taken.append(Taken(0, line.look_again(place, now) / SECOND, line.ahead(place, now)))
            self._settle(claim.ask.name, line)
        return taken, promoted

    def _allow(self, request: Allow, now: int) -> tuple[bool, float]:
        ok, wait, tat = gcra.allow(
            self.tats.get(request.name, 0), now, us(request.interval), request.burst, request.cost, us(request.reserve)
        )
        self.tats[request.name] = tat
        return ok, wait / SECOND

    def _line(self, name: str) -> Line:
        line = self.lines.get(name)
        if line is None:
            line = self.lines[name] = Line(mark=self.marks.get(name, 0))
        line.changed.clear()
        line.removed.clear()
        return line

    def _settle(self, name: str, line: Line) -> None:
        """Keep only the mark of an empty line."""
        if not line.places:
            self.marks[name] = line.mark
            self.lines.pop(name, None)
