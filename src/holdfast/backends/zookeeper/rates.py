"""The limiter's numbers, each in a node that is written only in the version that was read (`ordered_keys.rates`).

The time is the server's: a node is written for it, and the answer says when. Numbers that are over are removed by
whoever makes a new one, a few at a time.
"""

from __future__ import annotations

from ..._core.flow import RANDOM, Call, Flow
from ..ordered_keys.rates import Counter
from .error_mapping import refused
from .jute import Stat
from .ops import BAD_VERSION, EXISTS, NO_NODE, Create, Delete, Failure, List, Op, Read, Write
from .paths import CLOCK, RATES, step
from .requests import Batch
from .tree import Tree

MILLISECOND_US = 1000
SWEPT_COUNT = 8
ABSENT_VERSION = -1


class CounterNodes:
    """Implements `ordered_keys.rates.CounterStore`."""

    def __init__(self, tree: Tree, timeout: float) -> None:
        self._tree = tree
        self._timeout = timeout
        self._clock = Write(tree.names + CLOCK, b"")
        self._parent = tree.names + RATES

    def read(self, name: str) -> Flow[Counter]:
        tick: Stat | Failure
        found: tuple[bytes, Stat] | Failure
        read = Batch((self._clock, Read(f"{self._parent}/{step(name)}")))
        tick, found = yield Call(read, self._timeout)
        if isinstance(tick, Failure) and tick.code == NO_NODE:
            yield from self._tree.found(self._timeout, CLOCK, RATES)
            tick, found = yield Call(read, self._timeout)
        if isinstance(tick, Failure):
            raise refused(tick, f"limiting {name!r}")
        if not isinstance(found, Failure):
            return Counter(int(found[0] or b"0"), tick.mtime * MILLISECOND_US, found[1].version)
        if found.code != NO_NODE:
            raise refused(found, f"limiting {name!r}")
        return Counter(0, tick.mtime * MILLISECOND_US, ABSENT_VERSION)

    def swap(self, name: str, seen: Counter, tat_us: int | None) -> Flow[bool]:
        if tat_us is None:
            return True  # it was read a moment ago
        path, data, new = f"{self._parent}/{step(name)}", b"%d" % tat_us, seen.version == ABSENT_VERSION
        write: Op = Create(path, data, self._tree.acl) if new else Write(path, data, seen.version)
        [written] = yield Call(Batch((write,)), self._timeout)
        if isinstance(written, Failure):
            if written.code not in (BAD_VERSION, NO_NODE, EXISTS):
                raise refused(written, f"limiting {name!r}")
            return False
        if new:
            yield from self._sweep(seen.now_us)
        return True

    def _sweep(self, now_us: int) -> Flow[None]:
        """Remove a few numbers that are over: the next caller would start from nothing all the same."""
        [listed] = yield Call(Batch((List(self._parent),)), self._timeout)
        if not listed or not listed[0]:  # others sweep, too
            return
        chance: float = yield RANDOM
        first = int(chance * len(listed[0]))
        paths = [f"{self._parent}/{each}" for each in listed[0][first : first + SWEPT_COUNT]]
        found = yield Call(Batch(tuple(map(Read, paths))), self._timeout)
        over = [
            Delete(path, node[1].version)
            for path, node in zip(paths, found, strict=True)
            if node and int(node[0] or b"0") < now_us
        ]
        if over:
            yield Call(Batch(over), self._timeout)
