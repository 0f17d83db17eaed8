"""One survey, made ready to be asked for parts of it.

1. Names are in their order, so that a prefix is a range, found by bisection.
2. An order other than by name is made when it is first asked for, and kept: it is the same for every browser.
3. What was computed from a snapshot is kept with it (`cached`), bounded, and goes when the snapshot goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from ..errors import Misconfigured
from ..model import LockView

A = TypeVar("A")

MAX_CACHED_COUNT = 256


def _oldest(claims: Sequence[Any]) -> float:
    return max((claim.age for claim in claims), default=-1.0)


def _least_left(view: LockView) -> float:
    return min((claim.remaining for claim in view.holders if claim.live), default=float("inf"))


ORDERS: dict[str, Callable[[LockView], Any]] = {
    "name": lambda view: view.name,
    "waiting": lambda view: (-len(view.waiters), view.name),
    "held": lambda view: (-_oldest(view.holders), view.name),
    "left": lambda view: (_least_left(view), view.name),
}
"""The orders of names: by name, the most waiters first, the oldest hold first, the least ttl left first."""


class SurveySnapshot:
    """What one survey showed. `at` is when (of the system's clock), `took` how long it took, both in seconds.

    `problem` says why the last attempt to survey failed; then the names are those of the last one that did not.
    """

    def __init__(
        self, version: int, views: Sequence[LockView], *, at: float = 0.0, took: float = 0.0, problem: str = ""
    ) -> None:
        self.version = version
        self.at = at
        self.took = took
        self.problem = problem
        self.views = sorted(views, key=ORDERS["name"])
        self._names = [view.name for view in self.views]
        self._kept: dict[Hashable, Any] = {}

    def failed(self, version: int, problem: str) -> SurveySnapshot:
        """The same, after an attempt that failed."""
        return SurveySnapshot(version, self.views, at=self.at, took=self.took, problem=problem)

    def get(self, name: str) -> LockView | None:
        """The view of one name; None if nobody holds it or waits for it."""
        place = bisect_left(self._names, name)
        return self.views[place] if self._names[place : place + 1] == [name] else None

    def find(self, prefix: str, order: str, offset: int, limit: int) -> tuple[int, list[LockView]]:
        """How many names begin with the prefix, and a page of them.

        >>> snapshot = SurveySnapshot(1, [LockView(name, 1, (), ()) for name in ("b/2", "a/1", "b/1")])
        >>> total, page = snapshot.find("b/", "name", 1, 10)
        >>> total, [view.name for view in page]
        (2, ['b/2'])
        """
        if order not in ORDERS:
            raise Misconfigured(f"sort is {order!r}; there are: {', '.join(ORDERS)}")
        found = self.cached(("find", prefix, order), lambda: self._found(prefix, order))
        return len(found), found[offset : offset + limit]

    def cached(self, key: Hashable, make: Callable[[], A]) -> A:
        """What `make` gives, made once (rule 3)."""
        if key in self._kept:
            kept: A = self._kept[key]
            return kept
        if len(self._kept) >= MAX_CACHED_COUNT:
            self._kept.clear()
        made = self._kept[key] = make()
        return made

    def _found(self, prefix: str, order: str) -> list[LockView]:
        first = bisect_left(self._names, prefix)
        last = bisect_left(self._names, True, first, key=lambda name: not name.startswith(prefix))
        found = self.views[first:last]
        return found if order == "name" else sorted(found, key=ORDERS[order])
