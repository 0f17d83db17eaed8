"""Many seeds, on several cores, and the totals of their results."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field

from .planted import BUGS, planted
from .seed import Outcome, run

CHUNK_SEED_COUNT = 20
"""Seeds that a core takes at a time: enough to be worth the message, few enough for smooth progress."""


@dataclass(slots=True)
class SeedTotals:
    """The results of some seeds, added up."""

    seeds: int = 0
    events: int = 0
    operations: int = 0
    seconds: float = 0.0
    """Of virtual time."""
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    broken: list[Outcome] = field(default_factory=list)
    """The seeds in which an invariant was broken, in order."""

    def add(self, outcome: Outcome) -> None:
        self._sum(1, outcome.events, outcome.operations, outcome.seconds, outcome.counts, outcome.faults)
        if outcome.invariant:
            self.broken.append(outcome)

    def merge(self, other: SeedTotals) -> None:
        self._sum(other.seeds, other.events, other.operations, other.seconds, other.counts, other.faults)
        self.broken += other.broken

    def found(self, bug: str) -> Outcome | None:
        """The first seed that broke the invariant which is there to catch this bug."""
        return next((outcome for outcome in self.broken if outcome.invariant == BUGS[bug].invariant), None)

    def _sum(
        self, seeds: int, events: int, operations: int, seconds: float, counts: dict[str, int], faults: dict[str, int]
    ) -> None:
        self.seeds += seeds
        self.events += events
        self.operations += operations
        self.seconds += seconds
        for mine, others in ((self.counts, counts), (self.faults, faults)):
            for kind, count in others.items():
                mine[kind] = mine.get(kind, 0) + count


@dataclass(frozen=True, slots=True)
class SeedRange:
    """Some seeds for one core. With a bug planted, the run ends at the first seed that finds it."""

    seeds: range
    bug: str | None


def run_seed_range(seed_range: SeedRange) -> SeedTotals:
    totals = SeedTotals()
    with planted(seed_range.bug):
        for seed in seed_range.seeds:
            totals.add(run(seed))
            if seed_range.bug is not None and totals.found(seed_range.bug):
                break
    return totals


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_all(seeds: range, jobs: int, bug: str | None = None) -> Generator[SeedTotals, None, None]:
    """The totals of each range of seeds, in order. Close the iterator to stop early."""
    seed_ranges = [SeedRange(seeds[at : at + CHUNK_SEED_COUNT], bug) for at in range(0, len(seeds), CHUNK_SEED_COUNT)]
    if jobs == 1 or len(seed_ranges) == 1:
        yield from map(run_seed_range, seed_ranges)
        return
    with multiprocessing.Pool(jobs, _leave_interrupts_to_the_parent) as pool:
        yield from pool.imap(run_seed_range, seed_ranges)


def find(bug: str, seeds: range, jobs: int) -> SeedTotals:
    """Look for a planted bug, up to the first seed in which its own invariant finds it."""
    found = SeedTotals()
    with closing(run_all(seeds, jobs, bug)) as tallies:
        for totals in tallies:
            found.merge(totals)
            if found.found(bug):
                break
    return found
