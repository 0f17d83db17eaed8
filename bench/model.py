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
Measure: TypeAlias = Literal[
    "pair", "handoff", "waiters", "names", "hot", "processes", "own", "tools", "partitions", "leases", "import", "step"
]

MEASURES: tuple[Measure, ...] = (
    "pair", "handoff", "waiters", "names", "hot", "processes", "own", "tools", "partitions", "leases", "import", "step",
)  # fmt: skip
GROWTH: tuple[Measure, ...] = ("waiters", "names", "hot", "processes", "leases")
"""What `growth` stands for: the same at growing counts."""
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


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an engine keeps at one moment."""

    entries: int
    size: int
    """Bytes."""
    versions: int
    """What is left of earlier ones, until the engine clears it away."""


@dataclass(frozen=True, slots=True)
class Storage:
    """How to look at what an engine keeps, and how to bring about what happens to it after the retention."""

    look: Callable[[Target], Footprint]
    clean: Callable[[Target, float], None]
    """The retention has passed, and the engine has cleared up; for at most so many seconds."""
    entry: str
    version: str
    """What they are called, in the plural."""
    note: str
    """What `clean` does, for the reader of the table."""


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
    named_pair: Callable[[Target], AbstractContextManager[Callable[[str], object]]] | None = None
    """The same under a name that is given with each call."""
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
        if self.workers == 1:
            return "1 process"
        return f"{self.processes} processes" if self.processes > 1 else f"{self.threads} threads"


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
    best_peers: tuple[str, ...] = ()
    """Who stands beside holdfast where counts grow: with all of them a run would take hours."""
    own: tuple[str, ...] = ()
    """Modules of its package with `figures(target, quick)`: what is measured on no other engine."""
