"""Many seeds, on several cores, and the totals of their results."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field

from .actor_tellers import run_actors
from .bytes.planted import CLIENT_BUGS, planted_client
from .bytes.seed import run_bytes
from .once_callers import run_once
from .partition_members import run_members
from .planted import BUGS, planted
from .seed import Outcome, run
from .world import Teller

CORE = "core"
"""In place of an engine: the core on a simulated store, without bytes."""
WORLDS: dict[str, Callable[[int, Teller | None], Outcome]] = {
    CORE: run,
    "once": run_once,
    "actors": run_actors,
    "partitions": run_members,
}
"""What is simulated without bytes: locks, and what is built on them."""
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
        """The first seed that broke an invariant which is there to catch this bug."""
        caught = invariants_of(bug)
        return next((outcome for outcome in self.broken if outcome.invariant in caught), None)

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


def invariants_of(bug: str) -> tuple[str, ...]:
    """Those that may catch it."""
    return CLIENT_BUGS[bug].invariants if bug in CLIENT_BUGS else (BUGS[bug].invariant,)


def run_one(engine: str, seed: int, bug: str | None = None, tell: Teller | None = None) -> Outcome:
    """One seed of an engine that is simulated to the byte, or of one of the `WORLDS` on a simulated store."""
    if engine in WORLDS:
        with planted(bug):
            return WORLDS[engine](seed, tell)
    with planted_client(bug):
        return run_bytes(engine, seed, tell)


@dataclass(frozen=True, slots=True)
class SeedRange:
    """Some seeds for one core. With a bug planted, the run ends at the first seed that finds it."""

    seeds: range
    bug: str | None
    engine: str


def run_seed_range(seed_range: SeedRange) -> SeedTotals:
    totals = SeedTotals()
    for seed in seed_range.seeds:
        totals.add(run_one(seed_range.engine, seed, seed_range.bug))
        if seed_range.bug is not None and totals.found(seed_range.bug):
            break
    return totals


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_all(seeds: range, jobs: int, bug: str | None = None, engine: str = CORE) -> Generator[SeedTotals, None, None]:
    """The totals of each range of seeds, in order. Close the iterator to stop early."""
    starts = range(0, len(seeds), CHUNK_SEED_COUNT)
    seed_ranges = [SeedRange(seeds[at : at + CHUNK_SEED_COUNT], bug, engine) for at in starts]
    if jobs == 1 or len(seed_ranges) == 1:
        yield from map(run_seed_range, seed_ranges)
        return
    with multiprocessing.Pool(jobs, _leave_interrupts_to_the_parent) as pool:
        yield from pool.imap(run_seed_range, seed_ranges)


def find(bug: str, seeds: range, jobs: int, engine: str = CORE) -> SeedTotals:
    """Look for a planted bug, up to the first seed in which its own invariant finds it."""
    found = SeedTotals()
    with closing(run_all(seeds, jobs, bug, engine)) as tallies:
        for totals in tallies:
            found.merge(totals)
            if found.found(bug):
                break
    return found
