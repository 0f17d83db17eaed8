"""What was seen of each name over time: who held it, how that ended, and what was odd.

The engine tells what is; this compares one survey with the one before.

1. A hold begins when the engine says so (its age), not when it was first seen. It has ended some time between the last
   survey that showed it and the first that did not; `end` is the later of the two, or when the next holder began.
2. How it ended (`outcome`) is told as far as it can be known: *ended*, while its ttl was not over (it was released, or
   evicted by somebody else); *expired*, its ttl ran out between two surveys; *evicted*, by this console; *unknown*, if
   the engine could not be surveyed for too long.
3. A *gap* is time in which nobody held a name, between two holds; `waited` says that somebody was waiting meanwhile. An
   *overlap* is a survey that shows more weight than the capacity. Other marks (*evicted*, *asked*, *refused*) are told
   by whoever knows.
4. Holds that began and ended between two surveys are not seen.
5. What is over is bounded: so much per name, and so much of all names; then the name that changed least lately is
   forgotten first. What holds now is bounded by the survey itself.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, TypeAlias

from ..model import ClaimView, LockView

MAX_ENTRIES_PER_NAME_COUNT = 100
MAX_ENTRIES_COUNT = 50_000
TRUSTED_GAP_RATIO = 0.5
"""Surveys that are further apart than this part of the ttl do not tell an expiry from a release."""

HoldOutcome: TypeAlias = Literal["held", "ended", "expired", "evicted", "unknown"]
MarkKind: TypeAlias = Literal["gap", "overlap", "evicted", "asked", "refused"]


@dataclass(frozen=True, slots=True)
class SeenHold:
    """One hold. Times are of the console's clock; `ttl` is the most that was ever left of it."""

    owner: str
    token: int | None
    host: str
    pid: int
    mode: str
    weight: int
    begin: float
    seen: float
    left: float
    ttl: float
    waited: float | None = None
    end: float | None = None
    outcome: HoldOutcome = "held"


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Something that is no hold: from `begin` to `end`, in the words of `note`."""

    kind: MarkKind
    begin: float
    end: float
    note: str
    waited: bool = False


@dataclass(slots=True)
class _Name:
    """What there is now of one name."""

    holds: dict[tuple[str, int | None], SeenHold]
    waits: dict[str, float]
    """For how long each who waits has waited, by owner."""
    overlap: TimelineMark | None = None


class SurveyHistory:
    """Fed with surveys, in order. Not for several threads at once: the watcher has a mutex."""

    def __init__(self, *, per_name: int = MAX_ENTRIES_PER_NAME_COUNT, in_all: int = MAX_ENTRIES_COUNT) -> None:
        self._per_name, self._in_all = per_name, in_all
        self._now: dict[str, _Name] = {}
        self._past: OrderedDict[str, deque[SeenHold | TimelineMark]] = OrderedDict()
        self._free: OrderedDict[str, tuple[float, bool]] = OrderedDict()
        """Since when a name that was held is not, and whether anybody has been seen waiting for it."""
        self._evicted: dict[tuple[str, int], float] = {}
        self._count = 0

    def see(self, views: Iterable[LockView], at: float) -> None:
        """Another survey, made at this time."""
        before, self._now = self._now, {}
        for view in views:
            self._now[view.name] = self._see_name(view, before.pop(view.name, None), at)
        for name, known in before.items():
            self._close(name, known, {}, at)
        for key in [key for key, when in self._evicted.items() if at - when > 60.0]:
            del self._evicted[key]

    def mark(self, name: str, kind: MarkKind, at: float, note: str, token: int | None = None) -> None:
        """Something that no survey shows."""
        self._keep(name, TimelineMark(kind, at, at, note))
        if kind == "evicted" and token is not None:
            self._evicted[name, token] = at

    def ttl(self, name: str, claim: ClaimView) -> float:
        """The most that was ever left of a hold: what a bar of its ttl is full at."""
        known = self._now.get(name)
        hold = known.holds.get((claim.owner, claim.token)) if known is not None else None
        return max(_left(claim), hold.ttl if hold is not None else 0.0)

    def of(self, name: str) -> tuple[list[SeenHold], list[TimelineMark]]:
        """Holds and marks of one name, the oldest first."""
        past = list(self._past.get(name, ()))
        known = self._now.get(name)
        holds = [each for each in past if isinstance(each, SeenHold)]
        marks = [each for each in past if isinstance(each, TimelineMark)]
        if known is not None:
            holds += known.holds.values()
            marks += [known.overlap] if known.overlap is not None else []
        return sorted(holds, key=lambda hold: hold.begin), sorted(marks, key=lambda mark: mark.begin)

    @property
    def size(self) -> int:
        """How many entries are kept of what is over."""
        return self._count

    # One name

    def _see_name(self, view: LockView, known: _Name | None, at: float) -> _Name:
        live = {(claim.owner, claim.token): claim for claim in view.holders if claim.live}
        waits = {claim.owner: claim.age for claim in view.waiters}
        before = known if known is not None else _Name({}, {})
        new = live.keys() - before.holds.keys()
        begin = min((at - live[key].age for key in new), default=at)
        if before.holds.keys() - live.keys():
            self._close(view.name, before, live, at, begin if new else at, exclusive=view.capacity == 1)
        if new:
            self._fill_gap(view.name, begin, bool(before.waits))
        elif not live and view.name in self._free:
            since, waited = self._free[view.name]
            self._free[view.name] = since, waited or bool(waits)
        holds = {}
        for key, claim in live.items():
            hold = before.holds.get(key)
            left = _left(claim)
            if hold is None:
                holds[key] = SeenHold(
                    claim.owner, claim.token, claim.host, claim.pid, claim.mode, claim.weight,
                    at - claim.age, at, left, left, before.waits.get(claim.owner),
                )  # fmt: skip
            else:
                holds[key] = replace(hold, seen=at, left=left, ttl=max(hold.ttl, left))
        return _Name(holds, waits, self._overlap(view, live.values(), before.overlap, at))

    def _overlap(
        self, view: LockView, live: Iterable[ClaimView], known: TimelineMark | None, at: float
    ) -> TimelineMark | None:
        holders = list(live)
        weight = sum(claim.weight for claim in holders)
        if weight <= view.capacity:
            if known is not None:
                self._keep(view.name, known)
            return None
        tokens = ", ".join(str(claim.token) for claim in holders[:5])
        note = f"{len(holders)} holders at once take {weight} of {view.capacity}: tokens {tokens}"
        if known is not None and known.note == note:
            return replace(known, end=at)
        if known is not None:
            self._keep(view.name, known)
        return TimelineMark("overlap", at, at, note)

    def _fill_gap(self, name: str, begin: float, waited: bool) -> None:
        since, waited_before = self._free.pop(name, (None, False))
        if since is not None and begin > since:
            note = "nobody held it, and somebody waited" if waited or waited_before else "nobody held it"
            self._keep(name, TimelineMark("gap", since, begin, note, waited or waited_before))

    def _close(
        self,
        name: str,
        known: _Name,
        live: dict[tuple[str, int | None], ClaimView],
        at: float,
        end: float | None = None,
        exclusive: bool = False,
    ) -> None:
        """`exclusive`: the next holder's begin is the end of this one, whatever the clocks of two surveys say."""
        for key, hold in known.holds.items():
            if key not in live:
                over = max(hold.begin if exclusive else hold.seen, at if end is None else min(end, at))
                self._keep(name, replace(hold, end=over, outcome=self._outcome(name, hold, at)))
        if known.overlap is not None and not live:
            self._keep(name, known.overlap)
            known.overlap = None
        if known.holds and not live:
            self._free[name] = (at, bool(known.waits))
            while len(self._free) > self._in_all:
                self._free.popitem(last=False)

    def _outcome(self, name: str, hold: SeenHold, at: float) -> HoldOutcome:
        if hold.token is not None and (name, hold.token) in self._evicted:
            return "evicted"
        blind = at - hold.seen
        if blind <= hold.left or hold.ttl <= 0:
            return "ended"
        return "expired" if blind <= hold.ttl * TRUSTED_GAP_RATIO else "unknown"

    def _keep(self, name: str, entry: SeenHold | TimelineMark) -> None:
        """Rule 5."""
        past = self._past.setdefault(name, deque())
        self._past.move_to_end(name)
        past.append(entry)
        self._count += 1
        if len(past) > self._per_name:
            past.popleft()
            self._count -= 1
        while self._count > self._in_all:
            _, forgotten = self._past.popitem(last=False)
            self._count -= len(forgotten)


def _left(claim: ClaimView) -> float:
    """What is left of the ttl; 0 where there is none."""
    return claim.remaining if isfinite(claim.remaining) else 0.0
