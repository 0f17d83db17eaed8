"""What `locks.stats()` answers with: everything that one coordinator has counted since it was connected, as data.

The five figures to watch are verdicts, each with its limit. Limits are relative to the ttl, because what matters is how
near a holder comes to its end:

1. acquisition: 99 % of all waits take at most half of the ttl.
2. contention: at most 30 % of all who ask are not granted at once. Those whom the engine could not answer do not count.
3. hold: leases that are not renewed (`renew=False`) are released within 80 % of their ttl. A renewed lease may be held
   for longer; it is near its end when 80 % of the ttl had passed before a renewal came, and at 80 % of its `max_hold`.
   Each is of 99 %; the worst of the three counts.
4. timeouts: at most 5 % of those who are ready to wait give up. One try (`try_acquire`) is no wait.
5. refusals: none. A fence that refuses a stale token has saved the data: find out now how it came to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from .histogram import RATIOS, SECONDS, Buckets, Histogram

A = TypeVar("A")

ACQUISITION_LIMIT_RATIO = 0.5
CONTENTION_LIMIT_RATIO = 0.3
HOLD_LIMIT_RATIO = 0.8
TIMEOUTS_LIMIT_RATIO = 0.05
HIGH_RATIO, LOW_RATIO = 0.99, 0.01
"""The quantiles that are compared with limits: p99, and p1 of what must not become small."""

EMPTY_SECONDS = Buckets(SECONDS).view()
EMPTY_RATIOS = Buckets(RATIOS).view()


@dataclass(frozen=True, slots=True)
class LimitVerdict:
    """One of the five figures beside its limit. `value` is None, and `ok` true, where nothing was measured.

    `count` is of how many samples it is: a verdict on three of them says little.
    """

    rule: Literal["acquisition", "contention", "hold", "timeouts", "refusals"]
    value: float | None
    limit: float
    count: int

    @property
    def ok(self) -> bool:
        """Whether the figure is within its limit."""
        return self.value is None or self.value <= self.limit


@dataclass(frozen=True, slots=True)
class FamilyStats:
    """The counts of one family of names. Of a `Histogram`, the unit is seconds, or a part of the ttl (`…_ratio`)."""

    family: str
    acquired: int = 0
    waited: int = 0
    """Of those, how many were not granted at once."""
    timed_out: int = 0
    not_free: int = 0
    """Single tries (`try_acquire`, `timeout=0`) that found it taken."""
    failed: int = 0
    """The engine could not be asked."""
    deadlocks: int = 0
    cancelled: int = 0
    released: int = 0
    unreleased: int = 0
    """The engine could not be told of a release at once."""
    renewals: int = 0
    jeopardy: int = 0
    """How often a renewal failed that had succeeded before."""
    recovered: int = 0
    asked: int = 0
    """How often a holder was asked to give way."""
    dropped: int = 0
    """Leases that were garbage-collected without a release."""
    elected: int = 0
    """Leaderships won: the leader changes of an election, summed over all processes."""
    refused: int = 0
    """Attempts and actors (`once`, `actors`) whose write was refused, because another has taken over."""
    recoveries: int = 0
    """How often a holder has put right what its predecessor left (`recover=`)."""
    recoveries_failed: int = 0
    """How often that has failed: the name stays unrecovered."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """How many leases were lost, by reason; "evicted" is one."""
    held: int = 0
    """Held at this moment."""
    waiting: int = 0
    """Asked for at this moment, and not granted yet."""
    wait_seconds: Histogram = EMPTY_SECONDS
    hold_seconds: Histogram = EMPTY_SECONDS
    wait_ratio: Histogram = EMPTY_RATIOS
    hold_ratio: Histogram = EMPTY_RATIOS
    """Only of leases that are not renewed (rule 3)."""
    left_ratio: Histogram = EMPTY_RATIOS
    """The validity that was left when a renewal was answered."""
    max_hold_ratio: Histogram = EMPTY_RATIOS
    """How much of `max_hold` was used, where there is one."""

    @property
    def asked_for(self) -> int:
        """How often a lock of this family was asked for, and the engine answered."""
        return self.acquired + self.timed_out + self.not_free + self.deadlocks + self.cancelled

    @property
    def contention(self) -> float | None:
        """Not granted at once ÷ all; None before anybody has asked."""
        return (self.asked_for - self.acquired + self.waited) / self.asked_for if self.asked_for else None

    @property
    def verdicts(self) -> tuple[LimitVerdict, ...]:
        """The figures that a family has by itself: all but the refusals at a fence."""
        tries = self.acquired + self.timed_out + self.cancelled
        near_end = [
            (self.hold_ratio.quantile(HIGH_RATIO), self.hold_ratio.count),
            (self.max_hold_ratio.quantile(HIGH_RATIO), self.max_hold_ratio.count),
            (None if (left := self.left_ratio.quantile(LOW_RATIO)) is None else 1 - left, self.left_ratio.count),
        ]
        used, count = max(((value, count) for value, count in near_end if value is not None), default=(None, 0))
        return (
            LimitVerdict(
                "acquisition", self.wait_ratio.quantile(HIGH_RATIO), ACQUISITION_LIMIT_RATIO, self.wait_ratio.count
            ),
            LimitVerdict("contention", self.contention, CONTENTION_LIMIT_RATIO, self.asked_for),
            LimitVerdict("hold", used, HOLD_LIMIT_RATIO, count),
            LimitVerdict("timeouts", self.timed_out / tries if tries else None, TIMEOUTS_LIMIT_RATIO, tries),
        )

    def __add__(self, other: FamilyStats) -> FamilyStats:
        """Both together, under the family of the first."""
        sums = {each.name: _sum(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)[1:]}
        return replace(self, **sums)


@dataclass(frozen=True, slots=True)
class LockStats:
    """What one coordinator has counted; made by `stats()` of it, without asking the engine.

    >>> import holdfast
    >>> with holdfast.connect("memory://doc") as locks:
    ...     with locks.lock("orders/7"):
    ...         during = locks.stats()
    ...     after = locks.stats()
    >>> during.families["orders/*"].held, after.families["orders/*"].held, after.total.acquired
    (1, 0, 1)
    >>> [verdict.rule for verdict in after.verdicts]
    ['acquisition', 'contention', 'hold', 'timeouts', 'refusals']
    """

    engine: str
    """Its scheme: redis, etcd, …"""
    families: Mapping[str, FamilyStats]
    requests: Mapping[str, Histogram]
    """How long requests took that the engine answered, in seconds, by verb: take (if granted at once), renew, release,
    survey, evict, ask, check."""
    keeper_lag: Histogram
    """How late the keeper began renewals, in seconds: a process that is too busy, or was stopped."""
    reconnections: int
    """How often the engine answered again after it had been out of reach."""
    reachable: bool
    """Whether the last request to the engine was answered."""
    refusals: Mapping[tuple[str, str], int]
    """Refusals at the fences of this process, whichever coordinator the tokens were from: by kind and resource."""

    @property
    def total(self) -> FamilyStats:
        """All families together."""
        return sum(self.families.values(), FamilyStats("(all)"))

    def __add__(self, other: LockStats) -> LockStats:
        """Two coordinators of one engine and process together. Refusals are the process's: they are not added."""
        return LockStats(
            self.engine,
            _sums(self.families, other.families),
            _sums(self.requests, other.requests),
            self.keeper_lag + other.keeper_lag,
            self.reconnections + other.reconnections,
            self.reachable and other.reachable,
            self.refusals,
        )

    @property
    def verdicts(self) -> tuple[LimitVerdict, ...]:
        """The five figures of all families together, each with its limit."""
        total = self.total
        refused = total.refused + sum(self.refusals.values())
        return (*total.verdicts, LimitVerdict("refusals", refused, 0, refused))


def _sum(one: Any, other: Any) -> Any:
    """Of the same field: both are numbers, histograms or losses."""
    return _sums(one, other) if isinstance(one, Mapping) else one + other


def _sums(one: Mapping[str, A], other: Mapping[str, A]) -> dict[str, A]:
    sums: dict[str, Any] = dict(one)
    for key, value in other.items():
        sums[key] = sums[key] + value if key in sums else value
    return dict(sorted(sums.items()))
