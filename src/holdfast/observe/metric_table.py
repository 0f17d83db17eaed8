"""The table of metrics: every name, kind, unit, label and help text that exporters show, and where each is read from.

1. Names, labels and units are stable: they are part of the public interface, as docs/metrics.md lists them (a test
   compares the two). An entry may be added in any version, and removed in a major one.
2. Exporters go through this table and decide nothing. Every sample has the label `engine`, too, but those of
   `PROCESS_METRICS`, which no engine has a part in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .histogram import Histogram
from .stats import FamilyStats, LockStats

Value: TypeAlias = float | Histogram
Labelled: TypeAlias = Iterable[tuple[tuple[str, ...], Value]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the table. Of a counter, Prometheus' name ends in `_total`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    labels: tuple[str, ...]
    help: str
    read: Callable[[LockStats], Labelled]


def _by_family(read: Callable[[FamilyStats], Value]) -> Callable[[LockStats], Labelled]:
    return lambda stats: [((family,), read(of)) for family, of in stats.families.items()]


def _outcomes(stats: LockStats) -> Labelled:
    for family, of in stats.families.items():
        yield (family, "at_once"), of.acquired - of.waited
        for outcome in ("waited", "timed_out", "not_free", "failed", "deadlocks", "cancelled"):
            yield (family, outcome), getattr(of, outcome)


def _losses(stats: LockStats) -> Labelled:
    for family, of in stats.families.items():
        for reason, count in of.losses.items():
            yield (family, reason), count


def _refusals(stats: LockStats) -> Labelled:
    by_kind: dict[str, int] = {}
    for (kind, _), count in stats.refusals.items():
        by_kind[kind] = by_kind.get(kind, 0) + count
    return [((kind,), count) for kind, count in sorted(by_kind.items())]


def _family(name: str, kind: Literal["counter", "gauge", "histogram"], unit: str, field: str, text: str) -> Metric:
    return Metric(f"holdfast_{name}", kind, unit, ("family",), text, _by_family(lambda of: getattr(of, field)))


METRICS: tuple[Metric, ...] = (
    Metric(
        "holdfast_acquisitions", "counter", "", ("family", "outcome"),
        "How asking ended: at_once, waited (both granted), timed_out, not_free, failed, deadlocks, cancelled.",
        _outcomes,
    ),
    _family("released", "counter", "", "released", "Leases that were released while they were held."),
    _family("unreleased", "counter", "", "unreleased", "Releases of which the engine could not be told at once."),
    Metric(
        "holdfast_losses", "counter", "", ("family", "reason"),
        "Leases that were lost: expired, refused, session, evicted, max_hold, closed.", _losses,
    ),
    _family("dropped", "counter", "", "dropped", "Leases that were garbage-collected without a release."),
    _family("renewals", "counter", "", "renewals", "Renewals that the engine has answered."),
    _family("jeopardy", "counter", "", "jeopardy", "How often a lease got into jeopardy: a renewal failed."),
    _family("recovered", "counter", "", "recovered", "How often a lease recovered from jeopardy."),
    _family("asked", "counter", "", "asked", "How often a holder was asked to give way."),
    _family("elected", "counter", "", "elected", "Leaderships won: leader changes, summed over all processes."),
    _family("attempts_refused", "counter", "", "refused", "Writes of once and actors that came too late."),
    _family("recoveries", "counter", "", "recoveries", "Holders that put right what their predecessor left."),
    _family("recoveries_failed", "counter", "", "recoveries_failed", "Recoveries that failed: names left unrecovered."),
    _family("held", "gauge", "", "held", "Leases that this process holds now."),
    _family("waiting", "gauge", "", "waiting", "Acquisitions of this process that are not granted yet."),
    _family("wait_seconds", "histogram", "seconds", "wait_seconds", "Time until a lock was granted."),
    _family("hold_seconds", "histogram", "seconds", "hold_seconds", "Time that a lease was held."),
    _family("wait_ttl_ratio", "histogram", "ratio", "wait_ratio", "Time until a lock was granted, of its ttl."),
    _family("hold_ttl_ratio", "histogram", "ratio", "hold_ratio", "Time held, of the ttl: leases without renewal."),
    _family("left_ttl_ratio", "histogram", "ratio", "left_ratio", "Validity left when a renewal came, of the ttl."),
    _family("hold_max_ratio", "histogram", "ratio", "max_hold_ratio", "Time that a lease was held, of its max_hold."),
    Metric(
        "holdfast_request_seconds", "histogram", "seconds", ("verb",),
        "Time of requests that the engine has answered: take (granted at once), renew, release, survey, …",
        lambda stats: [((verb,), of) for verb, of in stats.requests.items()],
    ),
    Metric(
        "holdfast_keeper_lag_seconds", "histogram", "seconds", (), "How late the keeper began renewals.",
        lambda stats: [((), stats.keeper_lag)],
    ),
    Metric(
        "holdfast_reconnections", "counter", "", (), "How often the engine answered again after it was out of reach.",
        lambda stats: [((), stats.reconnections)],
    ),
    Metric(
        "holdfast_reachable", "gauge", "", (), "1 if the last request of every coordinator was answered, else 0.",
        lambda stats: [((), float(stats.reachable))],
    ),
)  # fmt: skip

PROCESS_METRICS: tuple[Metric, ...] = (
    Metric(
        "holdfast_refusals", "counter", "", ("kind",), "Stale tokens that fences in this process refused.", _refusals
    ),
)  # fmt: skip


def samples(
    by_engine: Mapping[str, LockStats],
) -> Iterable[tuple[Metric, tuple[str, ...], list[tuple[tuple[str, ...], Value]]]]:
    """Each metric with the names of its labels, and its samples, from `process_stats()`."""
    for metric in METRICS:
        yield metric, ("engine", *metric.labels), [
            ((engine, *labels), value) for engine, stats in by_engine.items() for labels, value in metric.read(stats)
        ]  # fmt: skip
    for metric in PROCESS_METRICS:  # the same in all: it is the process's
        yield metric, metric.labels, [each for stats in list(by_engine.values())[:1] for each in metric.read(stats)]
