"""The history of a run: what was done, when, by whom, with what outcome. The recorder and the checkers share it.

Lines
-----
One JSON object per line; what has its default is left out. Times are nanoseconds on the boot-time clock (`now`), which
all processes of a machine share and no fault of ours can set. `kind` says what a line is:

    invoke, ok, fail, info   an event of an operation of a client, see below
    run                      what was run: `Run`                                    (controller, first line)
    fault                    what was done to whom: `FaultRecord`                   (controller, when it is over)
    left                     a claim that a survey found after the end: `Leftover`  (controller)
    end                      the run is over and the survey is complete: `time`     (controller, last line)
    process                  whose the events of this file are: client, process     (client, first line)
    commit, final            what the resource's database says: `Commit`, `Final`   (only in an exported history)

Events
------
An operation is an `invoke` line, written before the call, and one of `ok`, `fail` (certainly nothing happened) or
`info` (nobody can tell) with the same `seq`, written after it; both by one process. An operation without its second
line was cut off by a kill: its outcome is info, and it never returned. `verb` is one of

    acquire   of a grant: mode, weight, capacity, fair; until is when it must have an answer; ok carries owner and token
    queued    a point (`ok` only): the claim stands in line; its place is kept until `until` without another look
    release   ok carries held (what release() returned)
    lost      a point (`ok` only): the holder is told that its lease is lost; error is the reason
    read      of the resource, without a claim; ok carries parent, the version that was read
    claim     of the fence, and a read in the same transaction; ok carries parent
    write     parent is the version it was computed from; ok carries version, fail what the fence said

All but acquire carry `of`, the seq of their acquire, and its token. In an exported history, where all is in one file
by time, events carry client and process themselves.

>>> import tempfile; from holdfast.torture.recorder import Recorder; from holdfast.torture.history_reader import load
>>> folder = tempfile.mkdtemp()
>>> with Recorder(folder, "c1") as recorder:
...     acquire = recorder.invoke("acquire", "a", mode="lock", weight=1, capacity=1)
...     acquire.ok(owner="o1", token=7)
...     release = recorder.invoke("release", "a", of=acquire.seq, token=7)
...     release.ok(held=True)
>>> [(o.verb, o.outcome, o.token) for o in load(folder).operations]
[('acquire', 'ok', 7), ('release', 'ok', 7)]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

Verb: TypeAlias = Literal["acquire", "queued", "release", "lost", "read", "claim", "write"]
Outcome: TypeAlias = Literal["ok", "fail", "info"]
Discipline: TypeAlias = Literal["unfenced", "check-on-write", "claim-before-read"]

DISCIPLINES: tuple[Discipline, ...] = ("unfenced", "check-on-write", "claim-before-read")

now: Callable[[], int] = partial(time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Nanoseconds on the boot-time clock."""


@dataclass(slots=True)  # a history has 100,000 of them: freezing would cost more than making them
class Operation:
    """One operation, its lines joined. `returned` is None if it never did. A point has invoked == returned."""

    client: str
    process: int
    seq: int
    verb: Verb
    name: str
    invoked: int
    returned: int | None = None
    outcome: Outcome = "info"
    of: int = 0
    mode: str = "lock"
    weight: int = 1
    capacity: int = 1
    fair: bool = True
    owner: str = ""
    token: int = 0
    until: int = 0
    held: bool | None = None
    parent: int | None = None
    version: int | None = None
    error: str = ""
    index: int = 0
    """Its place in the merged history, by invocation."""


@dataclass(frozen=True, slots=True)
class Run:
    """What was run. `promises` are those of the engine (Coordinator.promises.kept)."""

    engine: str
    seed: int = 0
    ttl: float = 0.0
    discipline: Discipline = "claim-before-read"
    scenario: str = ""
    url: str = ""
    clients: int = 0
    began: int = 0
    promises: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault, and its target.

    `target` is `client:<client>`, or anything else for the engine's side: `engine`, `node:2`, `proxy`, `name:a`. A
    fault that this machine cannot do has a note that begins with "not run: ", and no times.
    """

    fault: str
    target: str
    begin: int = 0
    end: int = 0
    note: str = ""

    @property
    def client(self) -> str | None:
        """The client it was done to, or None if it was done to the engine's side."""
        kind, _, name = self.target.partition(":")
        return name if kind == "client" else None

    @property
    def was_run(self) -> bool:
        return not self.note.startswith("not run")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A claim that a survey still found when every client was gone and every ttl was over."""

    name: str
    owner: str
    token: int = 0
    state: Literal["holds", "waits"] = "holds"
    client: str = ""


@dataclass(slots=True)
class Commit:
    """One line of the resource's own log, in the resource's own order: a claim, or a write and what it replaced.

    A write replaced version `before`, and was computed from `parent`: if they differ, it undid what it had not read.
    """

    number: int
    verb: Literal["claim", "write"]
    name: str
    client: str
    process: int
    seq: int
    token: int
    time: int
    before: int = 0
    parent: int = 0
    counter: int = 0


@dataclass(frozen=True, slots=True)
class Final:
    """What the resource holds in the end: the last version, the counter, and the set (of numbers of commits)."""

    name: str
    version: int
    counter: int
    members: frozenset[int]


@dataclass(slots=True)
class History:
    """A whole run, merged: operations by invocation, commits in the resource's order."""

    run: Run = field(default_factory=lambda: Run("unknown"))
    operations: list[Operation] = field(default_factory=list)
    faults: list[FaultRecord] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    finals: dict[str, Final] = field(default_factory=dict)
    left: list[Leftover] = field(default_factory=list)
    ended: int | None = None
    """When the run was over and surveyed; None if the controller did not get there."""
