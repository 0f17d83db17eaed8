"""What a browser, or a program, is sent: a part of what was seen, as data.

1. Every list is a page: it says how many there are in all (`total`), and holds at most `MAX_PAGE_COUNT`. A row of the
   list of locks has the first holders only.
2. Tokens are texts: JavaScript has no whole numbers above 2**53. Times are seconds; `at`, `begin` and `end` are
   those of the console's clock, since 1970.
3. Fields of `LockView` that this module does not know are handed on as they are (`other`): a page shows what the engine
   tells, not what its author knew of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from itertools import islice
from math import isfinite
from typing import Any

from ..errors import Misconfigured
from ..model import SHARED_CAPACITY, ClaimView, LockView, Predecessor
from .fences import FenceReadings
from .snapshot import SurveySnapshot
from .watcher import Watcher

DEFAULT_PAGE_COUNT = 50
MAX_PAGE_COUNT = 200
FIRST_HOLDERS_COUNT = 3
KNOWN = frozenset({"name", "capacity", "holders", "waiters", "unrecovered"})


@dataclass(frozen=True, slots=True)
class PageOf:
    """Which part of a list is wanted."""

    prefix: str = ""
    sort: str = "name"
    offset: int = 0
    limit: int = DEFAULT_PAGE_COUNT
    name: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> PageOf:
        """From the query of a request; raises `Misconfigured`.

        >>> PageOf.read({"prefix": "orders/", "limit": "20"})
        PageOf(prefix='orders/', sort='name', offset=0, limit=20, name='')
        """
        offset, limit = _number(query, "offset", 0), _number(query, "limit", DEFAULT_PAGE_COUNT)
        return cls(
            query.get("prefix", ""),
            query.get("sort", "name"),
            offset,
            min(limit, MAX_PAGE_COUNT),
            query.get("name", ""),
        )


def _number(query: Mapping[str, str], key: str, otherwise: int) -> int:
    text = query.get(key, str(otherwise))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Misconfigured(f"{key} is {text[:40]!r}; give a whole number from 0")
    return int(text)


def claim_data(claim: ClaimView, ttl: float | None = None) -> dict[str, Any]:
    """One claim; `ttl` is what its bar is full at."""
    left = claim.remaining if isfinite(claim.remaining) else None
    data = asdict(claim) | {"token": None if claim.token is None else str(claim.token), "remaining": left}
    return data if ttl is None else data | {"ttl": ttl}


def kind_of(view: LockView) -> str:
    modes = {claim.mode for claim in (*view.holders, *view.waiters[:1])}
    if view.capacity not in (1, SHARED_CAPACITY):
        return "semaphore"
    return "read-write" if view.capacity == SHARED_CAPACITY and "member" not in modes else next(iter(modes), "lock")


def _predecessor(left: Predecessor | None) -> dict[str, Any] | None:
    return None if left is None else {"token": str(left.token), "owner": left.owner, "ended": left.ended}


def other_fields(view: LockView) -> dict[str, Any]:
    """Rule 3."""
    unknown = {each.name: getattr(view, each.name) for each in fields(view) if each.name not in KNOWN}
    return {name: asdict(value) if is_dataclass(value) else value for name, value in unknown.items()}  # type: ignore[arg-type]


def _holders(view: LockView, watcher: Watcher, most: int) -> list[dict[str, Any]]:
    return [claim_data(claim, watcher.ttl(view.name, claim)) for claim in view.holders[:most]]


def lock_row(view: LockView, watcher: Watcher) -> dict[str, Any]:
    return {
        "name": view.name,
        "kind": kind_of(view),
        "capacity": view.capacity,
        "used": sum(claim.weight for claim in view.holders),
        "holder_count": len(view.holders),
        "holders": _holders(view, watcher, FIRST_HOLDERS_COUNT),
        "waiter_count": len(view.waiters),
        "oldest_wait": max((claim.age for claim in view.waiters), default=None),
        "unrecovered": _predecessor(view.unrecovered),
        "other": other_fields(view),
    }


def locks(snapshot: SurveySnapshot, watcher: Watcher, page: PageOf) -> dict[str, Any]:
    """A page of the names that begin with a prefix."""
    total, found = snapshot.find(page.prefix, page.sort, page.offset, page.limit)
    return {"total": total, "offset": page.offset, "locks": [lock_row(view, watcher) for view in found]}


def lock(
    snapshot: SurveySnapshot, watcher: Watcher, page: PageOf, fences: FenceReadings | None = None
) -> dict[str, Any]:
    """One name: its holders, a page of those who wait, with their places, and what was seen of it."""
    if not page.name:
        raise Misconfigured("a lock has a name; give it as name=…")
    view = snapshot.get(page.name) or LockView(page.name, 1, (), ())
    holds, marks = watcher.timeline(page.name)
    if fences is not None:
        marks = sorted([*marks, *fences.marks(page.name, holds)], key=lambda mark: mark.begin)
    waiters = [
        claim_data(claim) | {"place": place}
        for place, claim in islice(enumerate(view.waiters, 1), page.offset, page.offset + page.limit)
    ]
    return lock_row(view, watcher) | {
        "present": snapshot.get(page.name) is not None,
        "holders": _holders(view, watcher, MAX_PAGE_COUNT),
        "offset": page.offset,
        "waiters": waiters,
        "timeline": {
            "holds": [asdict(hold) | {"token": None if hold.token is None else str(hold.token)} for hold in holds],
            "marks": [asdict(mark) for mark in marks],
        },
    }


def status(snapshot: SurveySnapshot, watcher: Watcher) -> dict[str, Any]:
    """How the watching goes, and the sums."""

    def count() -> dict[str, int]:
        return {
            "names": len(snapshot.views),
            "held": sum(len(view.holders) for view in snapshot.views),
            "waiting": sum(len(view.waiters) for view in snapshot.views),
        }

    return {
        "version": snapshot.version,
        "at": snapshot.at or None,
        "took": snapshot.took,
        "interval": watcher.interval,
        "problem": snapshot.problem or None,
        **snapshot.cached("counts", count),
    }
