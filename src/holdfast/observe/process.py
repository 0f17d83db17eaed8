"""The counts of all coordinators of this process, as exporters show them: by engine.

1. A counter never goes back: what a coordinator has counted is kept when it is closed or dropped.
2. A forked child begins with nothing, whether or not Python was told of the fork: the process id decides.
3. The garbage collector may retire a coordinator at any moment, in the middle of an import too. So `retire` puts its
   meter aside, and what it has counted is added up by whoever connects or looks next.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import getpid
from typing import TYPE_CHECKING, Protocol
from weakref import ref

from .meter import Meter
from .observer import Observer
from .refusals import refusals

if TYPE_CHECKING:
    from .stats import LockStats


class Counted(Protocol):
    """The core of a coordinator."""

    observer: Observer | None

    def stats(self, refusals: Mapping[tuple[str, str], int]) -> LockStats:
        """What it has counted."""
        ...


class _Process:
    def __init__(self) -> None:
        self.pid = getpid()
        self.mutex = threading.RLock()
        self.live: dict[int, ref[Counted]] = {}
        """Weak: a coordinator that was dropped must not live on in its counts."""
        self.retired: deque[Meter] = deque()
        """Of coordinators that were closed or dropped, and are not in `closed` yet (rule 3)."""
        self.closed: dict[str, LockStats] = {}

    def add_retired(self) -> None:
        with self.mutex:
            while self.retired:
                last = replace(self.retired.popleft().view([], [], {}), reachable=True)
                before = self.closed.get(last.engine)
                self.closed[last.engine] = last if before is None else before + last


_process = _Process()
changed: list[Callable[[], object]] = []
"""Called after a coordinator was connected or closed, and so in each forked child that has one."""


def _here() -> _Process:
    global _process
    if _process.pid != getpid():
        _process = _Process()
    return _process


def enroll(core: Counted) -> None:
    """A coordinator begins to count."""
    here = _here()
    here.live[id(core)] = ref(core)
    here.add_retired()
    for call in changed:
        call()


def retire(core: Counted) -> None:
    """A coordinator was closed or dropped. A second call does nothing."""
    here = _here()
    if here.live.pop(id(core), None) is None or core.observer is None:
        return
    here.retired.append(core.observer.meter)
    for call in changed:
        call()


def process_stats() -> dict[str, LockStats]:
    """What all coordinators of this process have counted, by engine."""
    here = _here()
    with here.mutex:
        here.add_retired()
        refused, found = refusals(), dict(here.closed)
        for found_core in list(here.live.values()):
            if (core := found_core()) is not None and core.observer is not None:
                stats = core.stats({})
                before = found.get(stats.engine)
                found[stats.engine] = stats if before is None else before + stats
    return {engine: replace(stats, refusals=refused) for engine, stats in sorted(found.items())}
