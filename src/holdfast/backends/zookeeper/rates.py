"""The limiter: one number per name, in a node that is written only in the version that was read.

The time is the server's: a node is written for it, and the answer says when. Numbers that are over are removed by
whoever makes a new one, a few at a time.
"""

from __future__ import annotations

from ..._core import gcra
from ..._core.flow import RANDOM, Call, Flow, Sleep
from ...errors import BackendUnavailable
from .error_mapping import refused
from .ops import BAD_VERSION, EXISTS, NO_NODE, Create, Delete, Failure, List, Op, Read, Write
from .paths import CLOCK, RATES, step
from .requests import Batch
from .tree import Tree

MILLISECOND, SECOND = 1000, 1_000_000
TRIES = 50
SWEPT = 8


class Rates:
    def __init__(self, tree: Tree, timeout: float) -> None:
        self._tree = tree
        self._timeout = timeout
        self._clock = tree.names + CLOCK

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> Flow[tuple[bool, float]]:
        path = f"{self._tree.names}{RATES}/{step(name)}"
        for attempt in range(TRIES):
            tick, found = yield Call(Batch((Write(self._clock, b""), Read(path))), self._timeout)
            if isinstance(tick, Failure):
                if tick.code != NO_NODE:
                    raise refused(tick, f"limiting {name!r}")
                yield from self._tree.found(self._timeout, CLOCK, RATES)
                continue
            if isinstance(found, Failure) and found.code != NO_NODE:
                raise refused(found, f"limiting {name!r}")
            now = tick.mtime * MILLISECOND
            tat = int(found[0] or b"0") if found else 0
            ok, wait, tat = gcra.allow(
                tat, now, int(interval * SECOND), burst, cost, int(reserve * SECOND)
            )  # fmt: skip
            if not ok:
                return False, wait / SECOND
            write: Op = (
                Write(path, b"%d" % tat, found[1].version) if found else Create(path, b"%d" % tat, self._tree.acl)
            )
            [written] = yield Call(Batch((write,)), self._timeout)
            if not isinstance(written, Failure):
                if not found:
                    yield from self._sweep(now)
                return True, wait / SECOND
            if written.code not in (BAD_VERSION, NO_NODE, EXISTS):
                raise refused(written, f"limiting {name!r}")
            chance: float = yield RANDOM
            yield Sleep(chance * 0.001 * min(attempt, 10))
        raise BackendUnavailable(f"too many count at {name!r} at the same time; try again")

    def _sweep(self, now: int) -> Flow[None]:
        """Remove a few numbers that are over: the next caller would start from nothing all the same."""
        [listed] = yield Call(Batch((List(self._tree.names + RATES),)), self._timeout)
        if not listed or not listed[0]:  # others sweep, too
            return
        chance: float = yield RANDOM
        first = int(chance * len(listed[0]))
        paths = [f"{self._tree.names}{RATES}/{each}" for each in listed[0][first : first + SWEPT]]
        found = yield Call(Batch(tuple(map(Read, paths))), self._timeout)
        over = [
            Delete(path, node[1].version)
            for path, node in zip(paths, found, strict=True)
            if node and int(node[0] or b"0") < now
        ]
        if over:
            yield Call(Batch(over), self._timeout)
