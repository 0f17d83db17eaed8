"""The meter: the one place that counts. Exporters, `stats()` and boards only translate what is here.

1. Every count is made under the meter's mutex, from any thread: none is lost. The mutex is reentrant, because a signal
   handler may release a lease in the middle of a count.
2. A pair of acquire and release costs at most 3 µs here (`bench/measures/metered.py`), so what happens once a pair is
   written in place: no call for what a line can do.
3. It grows with the number of families, which is bounded (`families`), and with nothing else.
4. A forked child has a meter of its own that begins at zero, so that the sum over processes is right.
5. What is held and waited for now is not counted but looked at: a gauge that goes up and down by itself drifts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..model import LockSpec
from .families import MAX_FAMILIES_COUNT, OTHER, FamilyFunction, default_family, family_of
from .histogram import RATIOS, SECONDS, Buckets
from .log_exception import log_exception

if TYPE_CHECKING:
    from .stats import FamilyStats, LockStats  # at run time only where they are made: `import holdfast` stays light

LEAST_S, LEAST_RATIO = SECONDS[0], RATIOS[0]
SINKS: list[Callable[[str, str, str, float], object]] = []
"""Called with each sample of a histogram, for exporters that need every one: the metric's name in `metric_table`, the
engine, the family or verb, and the value. None of them may block."""
NAMES_COUNT = 1024
"""So many names are remembered with their family; then the memory begins anew."""


class FamilyCounts:
    """The counts of one family: the fields of `FamilyStats` that only grow."""

    __slots__ = ("acquired", "asked", "cancelled", "deadlocks", "dropped", "elected", "failed", "hold_ratio",
                 "hold_seconds", "jeopardy", "left_ratio", "losses", "max_hold_ratio", "not_free", "recovered",
                 "recoveries", "recoveries_failed", "refused", "released", "renewals", "timed_out", "unreleased",
                 "wait_ratio", "wait_seconds", "waited")  # fmt: skip

    def __init__(self) -> None:
        self.acquired = self.waited = self.timed_out = self.not_free = self.failed = self.deadlocks = 0
        self.cancelled = self.released = self.unreleased = self.renewals = self.jeopardy = self.recovered = 0
        self.asked = self.dropped = self.elected = self.refused = self.recoveries = self.recoveries_failed = 0
        self.losses: dict[str, int] = {}
        self.wait_seconds, self.hold_seconds = Buckets(SECONDS), Buckets(SECONDS)
        self.wait_ratio, self.hold_ratio = Buckets(RATIOS), Buckets(RATIOS)
        self.left_ratio, self.max_hold_ratio = Buckets(RATIOS), Buckets(RATIOS)

    def view(self, family: str, held: int, waiting: int) -> FamilyStats:
        """What they are now."""
        from .stats import FamilyStats

        now: dict[str, object] = {"held": held, "waiting": waiting}
        for name in self.__slots__:
            value = getattr(self, name)
            now[name] = value.view() if isinstance(value, Buckets) else dict(value) if name == "losses" else value
        return FamilyStats(family, **now)  # type: ignore[arg-type]  # the names are those of the fields


class Meter:
    """What one coordinator counts."""

    def __init__(
        self, engine: str, mutex: AbstractContextManager[object], family: FamilyFunction | None = None
    ) -> None:
        self.engine = engine
        self._mutex = mutex
        self._function = family or default_family
        self._families: dict[str, FamilyCounts] = {}
        self._of_name: dict[str, FamilyCounts] = {}
        """By name, or by template where there is one."""
        self._requests: dict[str, Buckets] = {"take": Buckets(SECONDS), "release": Buckets(SECONDS)}
        self._take, self._release = self._requests["take"], self._requests["release"]
        self._lag = Buckets(SECONDS)
        self.out_since: float | None = None
        """When the engine was found to be out of reach, while it is."""
        self.reconnections = 0

    def family(self, spec: LockSpec) -> str:
        """The family that a spec is counted under."""
        family = spec.family or family_of(spec.name, self._function)
        return family if family in self._families or len(self._families) < MAX_FAMILIES_COUNT else OTHER

    def _counts(self, spec: LockSpec) -> FamilyCounts:
        """Where a spec is counted. The mutex is not held: the user's function is called outside of it."""
        family = self.family(spec)
        with self._mutex:
            counts = self._families.get(family)
            if counts is None:
                counts = self._families[family] = FamilyCounts()
            if len(self._of_name) >= NAMES_COUNT:
                self._of_name.clear()
            self._of_name[spec.family or spec.name] = counts
        return counts

    def granted(self, spec: LockSpec, waited: float, at_once: bool) -> None:
        """A lock was granted after so many seconds; those of a grant at once are those of the request."""
        ratio = waited / spec.ttl
        counts = self._of_name.get(spec.family or spec.name) or self._counts(spec)
        with self._mutex:
            counts.acquired += 1
            slot = 0 if waited <= LEAST_S else bisect_left(SECONDS, waited)
            seconds, ratios = counts.wait_seconds, counts.wait_ratio
            seconds.counts[slot] += 1
            seconds.sum += waited
            ratios.counts[0 if ratio <= LEAST_RATIO else bisect_left(RATIOS, ratio)] += 1
            ratios.sum += ratio
            if at_once:
                take = self._take
                take.counts[slot] += 1
                take.sum += waited
            else:
                counts.waited += 1
            if spec.mode == "election":
                counts.elected += 1
        if SINKS:
            self._feed(self.family(spec), wait_seconds=waited, wait_ttl_ratio=ratio)
            if at_once:
                self._feed("take", request_seconds=waited)

    def released(self, spec: LockSpec, held: float, took: float | None) -> None:
        """A lease was released that was held for so many seconds; the engine needed `took` for it."""
        counts = self._of_name.get(spec.family or spec.name) or self._counts(spec)
        with self._mutex:
            counts.released += 1
            seconds = counts.hold_seconds
            seconds.counts[0 if held <= LEAST_S else bisect_left(SECONDS, held)] += 1
            seconds.sum += held
            if took is not None:
                release = self._release
                release.counts[0 if took <= LEAST_S else bisect_left(SECONDS, took)] += 1
                release.sum += took
            if not spec.renew:
                _add(counts.hold_ratio, held / spec.ttl)
            if spec.max_hold is not None:
                _add(counts.max_hold_ratio, held / spec.max_hold)
        if SINKS:
            self._feed_hold(spec, held)
            if took is not None:
                self._feed("release", request_seconds=took)

    def lost(self, spec: LockSpec, held: float, reason: str) -> None:
        """A lease was lost. It counts as a hold, too: the holds that end so are the long ones."""
        counts = self._of_name.get(spec.family or spec.name) or self._counts(spec)
        with self._mutex:
            counts.losses[reason] = counts.losses.get(reason, 0) + 1
            _add(counts.hold_seconds, held)
            if not spec.renew:
                _add(counts.hold_ratio, held / spec.ttl)
            if spec.max_hold is not None:
                _add(counts.max_hold_ratio, held / spec.max_hold)
        if SINKS:
            self._feed_hold(spec, held)

    def renewed(self, spec: LockSpec, left: float) -> None:
        """A renewal was answered, with so many seconds of validity left."""
        counts = self._of_name.get(spec.family or spec.name) or self._counts(spec)
        with self._mutex:
            counts.renewals += 1
            _add(counts.left_ratio, max(0.0, left) / spec.ttl)
        if SINKS:
            self._feed(self.family(spec), left_ttl_ratio=max(0.0, left) / spec.ttl)

    def count(self, spec: LockSpec, what: str) -> None:
        """One of the counts that need nothing else: an outcome without a lock, or a step in the life of a lease."""
        counts = self._of_name.get(spec.family or spec.name) or self._counts(spec)
        with self._mutex:
            setattr(counts, what, getattr(counts, what) + 1)

    def request(self, verb: str, seconds: float) -> None:
        """The engine has answered a request of this verb."""
        with self._mutex:
            if verb not in self._requests:
                self._requests[verb] = Buckets(SECONDS)
            _add(self._requests[verb], seconds)
        if SINKS:
            self._feed(verb, request_seconds=seconds)

    def late(self, seconds: float) -> None:
        """The keeper began a renewal so many seconds after it was due."""
        with self._mutex:
            _add(self._lag, seconds)
        if SINKS:
            self._feed("", keeper_lag_seconds=seconds)

    def _feed_hold(self, spec: LockSpec, held: float) -> None:
        family = self.family(spec)
        self._feed(family, hold_seconds=held)
        if not spec.renew:
            self._feed(family, hold_ttl_ratio=held / spec.ttl)
        if spec.max_hold is not None:
            self._feed(family, hold_max_ratio=held / spec.max_hold)

    def _feed(self, label: str, **values: float) -> None:
        for sink in SINKS:
            for name, value in values.items():
                try:
                    sink(f"holdfast_{name}", self.engine, label, value)
                except Exception:  # noqa: BLE001  an exporter's, or a library's behind it
                    log_exception("a sample of %s could not be handed on", name)

    def went_out(self, now: float) -> bool:
        """The engine is out of reach. False if that was known."""
        with self._mutex:
            known = self.out_since is not None
            if not known:
                self.out_since = now
            return not known

    def came_back(self) -> float | None:
        """It answers: since when it was out of reach; None if it was not."""
        with self._mutex:
            since, self.out_since = self.out_since, None
            self.reconnections += since is not None
            return since

    def view(
        self, holds: Iterable[LockSpec], asking: Iterable[LockSpec], refusals: Mapping[tuple[str, str], int]
    ) -> LockStats:
        """All of it now. `holds` and `asking`: what is held and waited for at this moment (rule 5)."""
        from .stats import LockStats

        held, waiting = Counter(map(self.family, holds)), Counter(map(self.family, asking))
        with self._mutex:
            families = {
                family: (self._families.get(family) or FamilyCounts()).view(family, held[family], waiting[family])
                for family in sorted({*self._families, *held, *waiting})
            }
            requests = {verb: buckets.view() for verb, buckets in self._requests.items()}
            return LockStats(
                self.engine, families, requests, self._lag.view(), self.reconnections, self.out_since is None, refusals
            )


def _add(buckets: Buckets, value: float) -> None:
    buckets.counts[bisect_left(buckets.bounds, value)] += 1
    buckets.sum += value
