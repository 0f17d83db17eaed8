"""Queues as others see them: the reads and writes behind survey, evict and ask (`ordered_keys.admin`).

1. Queues of several claims are listed, read, and listed again; what counts was there both times: all of it stood
   together at one moment in between. So a circle that is seen was one, and nobody is seen beside its successor.
2. What is seen is no older than the question: the server catches up with the leader first (`Sync`).
3. An eviction deletes the claim, and makes a tombstone of its will, in one step. A tombstone can be evicted, too: it
   keeps the name closed for somebody who has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..._core.flow import NOW, Call, Flow
from ...model import LockView
from .claim_state import read_about
from .end_notes import note_data, read_note
from .error_mapping import refused
from .ops import BAD_VERSION, NO_NODE, Answer, Create, Delete, Failure, List, Multi, Op, Read, Sync, Write
from .paths import CLOCK, RATES, end_note_of, name_of, step, tombstone_of
from .queue import NodeQueue, line_of
from .requests import Batch, child_nodes, node_read, stat_of
from .server_clock import ServerClock
from .tree import Tree
from .views import Node, holders_of, token_of, view_of

BATCH_COUNT = 400
"""Operations in one request of a survey."""
ASKED = b',"asked":true}'


@dataclass(slots=True)
class NodeQueueRead:
    """What was listed, what was read of it, and the server's time, in milliseconds."""

    parent: str
    line: NodeQueue
    now: int
    nodes: dict[str, Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeHold:
    """Implements `ordered_keys.admin.EvictableHold`."""

    owner: str
    path: str
    token: int
    live: bool
    read: Node


class QueueNodes:
    """Implements `ordered_keys.admin.QueueStore`."""

    def __init__(self, tree: Tree, timeout: float) -> None:
        self._tree = tree
        self._timeout = timeout
        self._clock = ServerClock(tree)

    def read_queues(self, prefix: str, exact: bool, contended: bool) -> Flow[Mapping[str, NodeQueueRead]]:
        names = [prefix]
        if not exact:
            _, listed = yield from self._ask([Sync(self._tree.root), List(self._tree.root)])
            steps = [each for each in child_nodes(listed) if each not in (RATES, CLOCK)]
            names = sorted(name for name in map(name_of, steps) if name.startswith(prefix))
        parents = [self._tree.names + step(name) for name in names]
        _, *listings = yield from self._ask([Sync(self._tree.root), *map(List, parents)])
        lines = [line_of(child_nodes(listed)) for listed in listings]
        crowded = [which for which, line in enumerate(lines) if len(line.claims) > 1]
        wanted = crowded if contended else range(len(lines))
        nodes = [(which, node) for which in wanted for node in _nodes(lines[which])]
        if not nodes:
            return {}
        reads: list[Op] = [Read(f"{parents[which]}/{node}") for which, node in nodes]
        tick = self._clock.tick((yield NOW))
        answers = yield from self._ask([*reads, *(List(parents[which]) for which in crowded), *tick])
        now = self._clock.read(stat_of(answers.pop()) if tick else None, (yield NOW))
        still = {which: set(child_nodes(found)) for which, found in zip(crowded, answers[len(reads) :], strict=True)}
        queues: dict[str, NodeQueueRead] = {}
        for (which, node), answer in zip(nodes, answers, strict=False):
            if (found := node_read(answer)) is not None and (which not in still or node in still[which]):
                fresh = NodeQueueRead(parents[which], lines[which], now)
                queues.setdefault(names[which], fresh).nodes[node] = found
        for queue in queues.values():  # who has left since it was listed stands before nobody
            queue.line.claims = [entry for entry in queue.line.claims if entry.node in queue.nodes]
        return queues

    def views(self, queues: Mapping[str, NodeQueueRead], timed: bool) -> Flow[list[LockView]]:
        yield from ()  # all that there is to know was read
        views = (view_of(name, queue.line, queue.nodes, queue.now) for name, queue in queues.items())
        return [view for view in views if view is not None]

    def holds(self, queue: NodeQueueRead) -> list[NodeHold]:
        parent, nodes = queue.parent, queue.nodes
        closed = [marker for marker in queue.line.tombstones if marker.node in nodes]
        found = [
            NodeHold(marker.owner, f"{parent}/{marker.node}", token, False, nodes[marker.node])
            for marker in closed
            if (token := read_about(nodes[marker.node][0]).get("token")) is not None
        ]
        holders = holders_of(queue.line, nodes)
        return found + [
            NodeHold(entry.owner, f"{parent}/{entry.node}", token_of(nodes[entry.node]), True, nodes[entry.node])
            for entry in queue.line.claims
            if entry.owner in holders
        ]

    def end_hold(self, name: str, queue: NodeQueueRead, hold: NodeHold) -> Flow[bool]:
        ops: list[Op] = [Delete(hold.path)]
        if hold.live:
            ops += self._note(queue, hold)
            if (slot := queue.line.slots.get(hold.owner)) is not None:
                ops.append(Delete(f"{queue.parent}/{slot.node}"))
            for will in queue.line.wills:
                if will.owner == hold.owner:
                    tombstone = tombstone_of(will.owner, will.weight, will.capacity, will.length)
                    ops.append(Delete(f"{queue.parent}/{will.node}"))
                    ops.append(Create(f"{queue.parent}/{tombstone}", b"", self._tree.acl))
        [done] = yield from self._ask([Multi(ops)])
        if isinstance(done, Failure) and done.code != NO_NODE:
            raise refused(done, f"evicting from {name!r}")
        return not isinstance(done, Failure)

    def _note(self, queue: NodeQueueRead, hold: NodeHold) -> list[Op]:
        """That it was evicted, of a mutex."""
        if queue.line.capacity != 1:
            return []
        node = end_note_of(hold.path.rpartition("/")[2])
        path, found = f"{queue.parent}/{node}", queue.nodes.get(node)
        if found is None:
            return [Create(path, note_data(hold.token, "evicted", False), self._tree.acl)]
        note = read_note(path, found[0])
        return [Write(path, note_data(hold.token, "evicted", note is not None and note.robust))]

    def request_release(self, name: str, hold: NodeHold) -> Flow[bool]:
        """Written into the node of the holder, who has a watch on it."""
        data, stat = hold.read
        if not read_about(data):
            return False
        [written] = yield from self._ask([Write(hold.path, data[:-1] + ASKED, stat.version)])
        if isinstance(written, Failure) and written.code != NO_NODE:  # confirmed in this moment: once more
            [again] = yield from self._ask([Read(hold.path)])
            if (found := node_read(again)) is None:
                return False
            [written] = yield from self._ask([Write(hold.path, found[0][:-1] + ASKED)])
        return bool(written)

    def _ask(self, ops: Sequence[Op]) -> Flow[list[Answer]]:
        answers: list[Answer] = []
        for first in range(0, len(ops), BATCH_COUNT):
            answers += yield Call(Batch(ops[first : first + BATCH_COUNT]), self._timeout)
        for op, answer in zip(ops, answers, strict=True):
            if isinstance(answer, Failure) and answer.code not in (NO_NODE, BAD_VERSION) and not isinstance(op, Write):
                raise refused(answer, "looking")
        return answers


def _nodes(line: NodeQueue) -> Iterable[str]:
    yield from (entry.node for entry in line.claims)
    yield from line.notes
    yield from (marker.node for marker in (*line.tombstones, *line.orphans, *line.slots.values()))
