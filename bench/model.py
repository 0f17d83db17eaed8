"""What is measured, as data: contenders, engines, and the result of each measurement.

A contender is a record of functions, one for each thing that it can do; None means that it cannot, and
`cannot` says why. Library code is imported inside those functions, so that a missing peer is a reason in the
report and not the end of the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["floor", "bare", "holdfast", "peer"]
"""The floor is the unit of all ratios; `bare` is another use of the bare engine, for comparison."""
Measure: TypeAlias = Literal["pair", "handoff", "growth", "own", "leases", "import", "step"]

MEASURES: tuple[Measure, ...] = ("pair", "handoff", "growth", "own", "leases", "import", "step")
TAKE_TIMEOUT_S = 10.0
"""Seconds that any contender may wait for a lock; no turn is nearly as long."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running engine: what to connect to, and a scratch folder for files."""

    url: str
    folder: Path


@dataclass(frozen=True, slots=True)
class WorkerLock:
    """The lock as one worker uses it. `take` blocks for at most TAKE_TIMEOUT_S, and raises if it has no lock then."""

    take: Callable[[], object]
    release: Callable[[], object]


class LeaseSet(Protocol):
    """Many leases of one client, each under its own name, kept alive until the end."""

    def take(self, count: int, ttl: float) -> None: ...

    def lost(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Contender:
    """One library, or the bare engine, and how to make it do each measured thing."""

    name: str
    role: Role
    lock_factory: Callable[[Target, str], AbstractContextManager[Callable[[], WorkerLock]]] | None = None
    """(target, lock name) -> a function that makes a `WorkerLock` for each thread. Opened once in each process."""
    pair: Callable[[Target], AbstractContextManager[Callable[[], object]]] | None = None
    """One take and release as one call; made from `lock_factory` where it is not given."""
    async_pair: Callable[[Target], AbstractAsyncContextManager[Callable[[], Awaitable[object]]]] | None = None
    task_locks: (
        Callable[[Target], AbstractAsyncContextManager[Callable[[], AbstractAsyncContextManager[object]]]] | None
    ) = None
    """What many tasks of one process wait for, as each of them makes it: always the same lock."""
    lease_set: Callable[[Target], AbstractContextManager[LeaseSet]] | None = None
    imports: str = ""
    """The statement that its users start with; empty: nothing to measure."""
    counted: bool = False
    """Its commands show in the engine's own counter."""
    cannot: Mapping[Measure, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """Who contends for one lock: `processes` of `threads` each."""

    processes: int
    threads: int

    @property
    def workers(self) -> int:
        return self.processes * self.threads

    def __str__(self) -> str:
        return f"{self.processes} processes" if self.processes > 1 else f"{self.threads} threads"


@dataclass(frozen=True, slots=True)
class Figure:
    """One that only this engine has, beside its limit."""

    title: str
    text: str
    met: bool


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: how to start it, how to count its commands, and the figures that holdfast is held to."""

    name: str
    start: Callable[[Path], AbstractContextManager[Target]]
    """Runs the engine in a scratch folder. Servers are children, stopped by their own pid on leaving."""
    layouts: tuple[Layout, ...] = (Layout(1, 8), Layout(1, 64), Layout(8, 1))
    commands: Callable[[Target], int] | None = None
    command: str = "commands"
    """What the counter counts, in the plural."""
    shares_core: bool = False
    """Client and single-threaded server go on one core for the pair: else the floor differs from itself."""
    limits: tuple[Any, ...] = ()
    """`bench.verdicts.Limit`s, beside those that hold for every engine."""
    own: tuple[str, ...] = ()
    """Modules of its package with `figures(target, quick)`: what is measured on no other engine."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A contender that is not in a measurement, and why."""

    contender: str
    measure: Measure
    reason: str


@dataclass(frozen=True, slots=True)
class PairResult:
    """Uncontended take + release. Seconds; ratios to the floor of the same round."""

    contender: str
    role: Role
    p50: float
    p99: float
    cpu: float
    ratio: float
    ratio_p99: float
    ratio_cpu: float
    pairs: int
    turns: int


@dataclass(frozen=True, slots=True)
class HandoffResult:
    """One lock, many workers. Seconds; shares from 0 to 1."""

    contender: str
    role: Role
    layout: str
    hold: float
    rate: float
    rate_ratio: float
    """Acquisitions a second, also as a ratio to the floor of the same round."""
    gap_p50: float
    gap_p99: float
    """From a release to the next grant, to any worker, when another worker was waiting at the release."""
    handed_p50: float
    handed_p99: float
    """The same, where the lock went to another worker. NaN where it never did."""
    min_share: float
    """What the worst-off worker got, as a part of its fair share."""
    regrants: float
    """The share of grants that went to the worker that had just let go."""
    held: float
    """The share of time in which the lock was held."""
    longest_wait: float
    overlaps: int
    """Grants before the previous holder let go. Anything but 0 is a broken lock."""
    commands: float | None
    """Engine commands for each acquisition."""
    grants: int


@dataclass(frozen=True, slots=True)
class GrowthResult:
    """So many tasks of one process want one lock, and each asks again at once. Seconds; NaN: not seen in time."""

    contender: str
    role: Role
    waiters: int
    first_round: float
    """Until each had it once."""
    rate: float
    gap_p50: float
    """From one's release to the next one's grant."""
    gap_ratio: float
    """To its own gap with the fewest waiters."""
    cancel: float
    """To end them all."""
    server_cpu: float
    """CPU time of the engine for a hand-off, where it is a process of its own."""


@dataclass(frozen=True, slots=True)
class LeasesResult:
    """Many leases kept alive by one client, over `window` seconds."""

    contender: str
    role: Role
    leases: int
    ttl: float
    window: float
    cpu: float
    """Share of one core."""
    threads_before: int
    threads_typical: int
    threads_peak: int
    bytes_per_lease: float
    commands: float | None
    """Engine commands a second."""
    lost: int
    taken_in: float


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What a statement costs over a bare start of Python, in seconds."""

    contender: str
    role: Role
    statement: str
    p50: float
    p99: float
    cpu: float
    """CPU time, over that of a bare start: it stays the same on a busy machine, where wall time grows."""
    bare: float
    runs: int


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one op of a flow costs through a driver, in seconds. `added`: over the same work by hand."""

    driver: str
    op: str
    p50: float
    p99: float
    added: float
    steps: int


@dataclass(slots=True)
class Report:
    """All that one run found."""

    engine: str
    mode: str
    environment: dict[str, str]
    pair: list[PairResult] = field(default_factory=list)
    handoff: list[HandoffResult] = field(default_factory=list)
    growth: list[GrowthResult] = field(default_factory=list)
    own: list[Figure] = field(default_factory=list)
    leases: list[LeasesResult] = field(default_factory=list)
    imports: list[ImportResult] = field(default_factory=list)
    step: list[StepResult] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    seconds: float = 0.0
