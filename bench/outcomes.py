"""What a run has found, as data: a class for each measurement, and the report of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.model import Footprint, Measure, Role
from bench.tool_outcomes import PartitionResult, ToolResult, ZombieResult


@dataclass(frozen=True, slots=True)
class Figure:
    """One that only this engine has, beside its limit."""

    title: str
    text: str
    met: bool


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
    max_share: float
    """What the worst-off and the best-off worker got, as parts of the fair share."""
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
class WaitersResult:
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
    server_cpu_ratio: float
    """To its own with the fewest waiters."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the engine keeps more than before: right after the work, and after the retention."""

    after: Footprint
    left: Footprint


@dataclass(frozen=True, slots=True)
class UseResult:
    """One caller takes and releases `asked` times, or for as long as there was time: `done`."""

    contender: str
    role: Role
    asked: int
    done: int
    rate: float
    client_bytes: int
    """By which the client's resident memory has grown."""
    stored: Stored | None
    """None where the engine is no other process."""


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
    waiters: list[WaitersResult] = field(default_factory=list)
    names: list[UseResult] = field(default_factory=list)
    """Each name is used once."""
    hot: list[UseResult] = field(default_factory=list)
    """It is always the same name."""
    processes: list[HandoffResult] = field(default_factory=list)
    own: list[Figure] = field(default_factory=list)
    tools: list[ToolResult] = field(default_factory=list)
    zombies: list[ZombieResult] = field(default_factory=list)
    partitions: list[PartitionResult] = field(default_factory=list)
    leases: list[LeasesResult] = field(default_factory=list)
    imports: list[ImportResult] = field(default_factory=list)
    step: list[StepResult] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    seconds: float = 0.0
