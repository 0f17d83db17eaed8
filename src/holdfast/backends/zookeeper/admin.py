"""Survey, evict, ask: what others do with a line. Nobody who waits is woken by a look.

1. Lines of several claims are listed, read, and listed again; what counts was there both times: all of it stood
   together at one moment in between. So a circle that is seen was one, and nobody is seen beside its successor.
2. What is seen is no older than the question: the server catches up with the leader first (`Sync`).
3. An eviction deletes the claim, and makes a ghost of its will, in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._core.flow import NOW, Call, Flow
from ...model import LockView
from .error_mapping import refused
from .line import Picture, picture_of
from .ops import BAD_VERSION, NO_NODE, Create, Delete, Failure, List, Multi, Op, Read, Sync, Write
from .paths import CLOCK, RATES, Entry, ghost_of, name_of, step
from .places import read_about
from .requests import Batch
from .server_clock import ServerClock
from .tree import Tree
from .views import Node, holders_of, token_of, view_of

AT_ONCE_COUNT = 400
"""Operations in one request of a survey."""
ASKED = b',"asked":true}'
TRIES_COUNT = 4
Line = tuple[Picture, dict[str, Node]]
"""What was listed, and what was read of it."""
NOTHING: Line = (Picture(), {})


class AdminFlows:
    def __init__(self, tree: Tree, timeout: float) -> None:
        self._tree = tree
        self._timeout = timeout
        self._clock = ServerClock(tree)

    def survey(self, prefix: str, exact: bool, contended: bool) -> Flow[list[LockView]]:
        if exact:
            names = [prefix]
        else:
            _, listed = yield from self._ask([Sync(self._tree.root), List(self._tree.root)])
            steps = [each for each in (listed[0] if listed else ()) if each not in (RATES, CLOCK)]
            names = sorted(name for name in map(name_of, steps) if name.startswith(prefix))
        parents = [self._tree.names + step(name) for name in names]
        lines, now = yield from self._read(parents, contended)
        views = (view_of(names[which], picture, read, now) for which, (picture, read) in sorted(lines.items()))
        return [view for view in views if view is not None]

    def _read(self, parents: Sequence[str], contended: bool = False) -> Flow[tuple[dict[int, Line], int]]:
        """The lines below these nodes that are not empty (with `contended`: of several claims), by their numbers; and
        the server's time."""
        _, *listings = yield from self._ask([Sync(self._tree.root), *(List(parent) for parent in parents)])
        pictures = [picture_of(listed[0]) if listed else Picture() for listed in listings]
        crowded = [which for which, picture in enumerate(pictures) if len(picture.claims) > 1]
        wanted = crowded if contended else range(len(pictures))
        nodes = [(which, node) for which in wanted for node in _nodes(pictures[which])]
        if not nodes:
            return {}, 0
        reads: list[Op] = [Read(f"{parents[which]}/{node}") for which, node in nodes]
        tick = self._clock.tick((yield NOW))
        answers = yield from self._ask([*reads, *(List(parents[which]) for which in crowded), *tick])
        now = self._clock.read(answers.pop() if tick else None, (yield NOW))
        still = {
            which: set(found[0]) if found else set()
            for which, found in zip(crowded, answers[len(reads) :], strict=True)
        }
        lines: dict[int, Line] = {}
        for (which, node), read in zip(nodes, answers, strict=False):
            if read and (which not in still or node in still[which]):
                lines.setdefault(which, (pictures[which], {}))[1][node] = read
        for picture, found in lines.values():  # who has left since it was listed stands before nobody
            picture.claims = [entry for entry in picture.claims if entry.node in found]
        return lines, now

    def evict(self, name: str, token: int) -> Flow[bool]:
        parent = self._tree.names + step(name)
        for _ in range(TRIES_COUNT):
            lines, _ = yield from self._read([parent])
            picture, read = lines.get(0, NOTHING)
            for ghost in picture.ghosts:  # it keeps the name closed for somebody who has left
                if ghost.node in read and read_about(read[ghost.node][0]).get("token") == token:
                    [gone] = yield from self._ask([Delete(f"{parent}/{ghost.node}")])
                    return bool(gone)
            holders = holders_of(picture, read)
            found = [
                e for e in picture.claims if e.owner in holders and e.node in read and token_of(read[e.node]) == token
            ]
            if not found:
                return False
            [done] = yield from self._ask([Multi(self._eviction(parent, picture, found[0]))])
            if not isinstance(done, Failure):
                return True
            if done.code != NO_NODE:
                raise refused(done, f"evicting from {name!r}")
        return False

    def _eviction(self, parent: str, picture: Picture, entry: Entry) -> list[Op]:
        ops: list[Op] = [Delete(f"{parent}/{entry.node}")]
        if (seat := picture.seats.get(entry.owner)) is not None:
            ops.append(Delete(f"{parent}/{seat.node}"))
        for will in picture.wills:
            if will.owner == entry.owner:
                ghost = ghost_of(will.owner, will.weight, will.capacity, will.length)
                ops += [Delete(f"{parent}/{will.node}"), Create(f"{parent}/{ghost}", b"", self._tree.acl)]
        return ops

    def ask(self, name: str, token: int | None) -> Flow[int]:
        """Write the wish into the nodes of the holders; each has a watch on its own."""
        parent = self._tree.names + step(name)
        lines, _ = yield from self._read([parent])
        picture, read = lines.get(0, NOTHING)
        holders = holders_of(picture, read)
        asked = 0
        for entry in picture.claims:
            if entry.owner not in holders or entry.node not in read:
                continue
            data, stat = read[entry.node]
            if (token is not None and token_of(read[entry.node]) != token) or not read_about(data):
                continue
            [written] = yield from self._ask([Write(f"{parent}/{entry.node}", data[:-1] + ASKED, stat.version)])
            if isinstance(written, Failure) and written.code != NO_NODE:  # confirmed in this moment: once more
                [now] = yield from self._ask([Read(f"{parent}/{entry.node}")])
                if not now:
                    continue
                [written] = yield from self._ask([Write(f"{parent}/{entry.node}", now[0][:-1] + ASKED)])
            asked += bool(written)
        return asked

    def _ask(self, ops: Sequence[Op]) -> Flow[list[Any]]:
        answers: list[Any] = []
        for first in range(0, len(ops), AT_ONCE_COUNT):
            answers += yield Call(Batch(ops[first : first + AT_ONCE_COUNT]), self._timeout)
        for op, answer in zip(ops, answers, strict=True):
            if isinstance(answer, Failure) and answer.code not in (NO_NODE, BAD_VERSION) and not isinstance(op, Write):
                raise refused(answer, "looking")
        return answers


def _nodes(picture: Picture) -> Iterable[str]:
    yield from (entry.node for entry in picture.claims)
    yield from (trace.node for trace in (*picture.ghosts, *picture.orphans, *picture.seats.values()))
