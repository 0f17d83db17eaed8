"""Survey, evict, ask: what others do with a line. Nobody who waits is woken by a look.

1. A survey lists and reads. For circles (`contended`) it lists twice and keeps the claims that were there both times:
   all of them stood together at one moment in between, so a circle that is seen was one.
2. What is seen is no older than the question: the server catches up with the leader first (`Sync`).
3. An eviction deletes the claim, and makes a ghost of its will, in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._core.flow import NOW, Call, Flow
from ...model import LockView
from .jute import Stat
from .line import Picture, granted_of, picture_of
from .ops import BAD_VERSION, NO_NODE, Create, Delete, Failure, List, Multi, Op, Read, Sync, Write
from .paths import CLOCK, RATES, Entry, ghost_of, name_of, step
from .places import read_about
from .requests import Batch
from .server_clock import ServerClock
from .tree import Tree
from .trouble import refused
from .views import token_of, view_of

AT_ONCE = 400
"""Operations in one request of a survey."""
ASKED = b',"asked":true}'
TRIES = 4


class Looking:
    def __init__(self, tree: Tree, timeout: float) -> None:
        self._tree = tree
        self._timeout = timeout
        self._clock = ServerClock(tree)

    def survey(self, prefix: str, exact: bool, contended: bool) -> Flow[list[LockView]]:
        sync = Sync(self._tree.root)
        if exact:
            names = [prefix]
        else:
            _, listed = yield from self._ask([sync, List(self._tree.root)])
            steps = [each for each in (listed[0] if listed else ()) if each not in (RATES, CLOCK)]
            names = sorted(name for name in map(name_of, steps) if name.startswith(prefix))
        parents = [self._tree.names + step(name) for name in names]
        _, *listings = yield from self._ask([sync, *(List(parent) for parent in parents)])
        pictures = [picture_of(listed[0]) if listed else Picture() for listed in listings]
        nodes = [
            (which, node)
            for which, picture in enumerate(pictures)
            if not contended or len(picture.claims) > 1
            for node in _nodes(picture)
        ]
        if not nodes:
            return []
        reads: list[Op] = [Read(f"{parents[which]}/{node}") for which, node in nodes]
        again: list[Op] = [List(parents[which]) for which in sorted({which for which, _ in nodes})] if contended else []
        tick = self._clock.tick((yield NOW))
        answers = yield from self._ask([*reads, *again, *tick])
        now = self._clock.read(answers.pop() if tick else None, (yield NOW))
        still = {node for listed in answers[len(reads) :] if listed for node in listed[0]}
        found: dict[int, dict[str, tuple[bytes, Stat]]] = {}
        for (which, node), read in zip(nodes, answers, strict=False):
            if read and (not contended or node in still):
                found.setdefault(which, {})[node] = read
        for which, read in found.items():  # who has left since it was listed stands before nobody
            pictures[which].claims = [entry for entry in pictures[which].claims if entry.node in read]
        views = (view_of(names[which], pictures[which], read, now) for which, read in sorted(found.items()))
        return [view for view in views if view is not None]

    def evict(self, name: str, token: int) -> Flow[bool]:
        parent = self._tree.names + step(name)
        for _ in range(TRIES):
            picture, read = yield from self._read(parent)
            for ghost in picture.ghosts:  # it keeps the name closed for somebody who has left
                if ghost.node in read and read_about(read[ghost.node][0]).get("token") == token:
                    [gone] = yield from self._ask([Delete(f"{parent}/{ghost.node}")])
                    return bool(gone)
            holders = granted_of(picture)
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
        picture, read = yield from self._read(parent)
        holders = granted_of(picture)
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

    def _read(self, parent: str) -> Flow[tuple[Picture, dict[str, tuple[bytes, Stat]]]]:
        _, listed = yield from self._ask([Sync(self._tree.root), List(parent)])
        picture = picture_of(listed[0]) if listed else Picture()
        nodes = list(_nodes(picture))
        answers = yield from self._ask([Read(f"{parent}/{node}") for node in nodes])
        found = {node: read for node, read in zip(nodes, answers, strict=True) if read}
        picture.claims = [entry for entry in picture.claims if entry.node in found]
        return picture, found

    def _ask(self, ops: Sequence[Op]) -> Flow[list[Any]]:
        answers: list[Any] = []
        for first in range(0, len(ops), AT_ONCE):
            answers += yield Call(Batch(ops[first : first + AT_ONCE]), self._timeout)
        for op, answer in zip(ops, answers, strict=True):
            if isinstance(answer, Failure) and answer.code not in (NO_NODE, BAD_VERSION) and not isinstance(op, Write):
                raise refused(answer, "looking")
        return answers


def _nodes(picture: Picture) -> Iterable[str]:
    yield from (entry.node for entry in picture.claims)
    yield from (trace.node for trace in (*picture.ghosts, *picture.orphans, *picture.seats.values()))
