"""Between one process and all nodes. Each message to each node may be late, lost, duplicated or out of order.

1. A connection never outlives a run of its node: a message that reaches another run is lost, and the handshake
   (`hello`) comes before anything else.
2. A request is answered when it is decided, or after its timeout; a later reply is dropped.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from holdfast.backends.redlock.fanout import SENT, Fanout, Tally

from ..driver import TICK_S, Task

if TYPE_CHECKING:
    from ..process import Process
    from .world import QuorumWorld, SimNode


class QuorumRequest:
    """A request in flight."""

    __slots__ = ("done", "epoch", "heard", "request", "tally", "task")

    def __init__(self, task: Task, request: Fanout, tally: Tally) -> None:
        self.task = task
        self.epoch = task.epoch
        self.request = request
        self.tally = tally
        self.heard: set[int] = set()
        self.done = False

    def finish(self) -> None:
        if not self.done:
            self.done = True
            self.task.wake(self.epoch, self.tally)


class QuorumWire:
    """One process's connections."""

    def __init__(self, world: QuorumWorld, process: Process) -> None:
        self._world = world
        self._process = process
        self._runs = [""] * len(world.nodes)

    def call(self, task: Task, request: Fanout, timeout: float) -> None:
        world = self._world
        nodes = world.nodes if request.only is None else [world.nodes[request.only]]
        poll = QuorumRequest(task, request, Tally(request.until, len(world.nodes), len(nodes), world.majority))
        world.invariants.asked(self._process, request)
        for node in nodes:
            self._send(poll, node)
        if request.until is SENT:
            self._process.after(TICK_S, poll.finish)
        else:
            self._process.after(timeout, self._time_out, poll)

    def wait(self, task: Task, owner: str, timeout: float) -> None:
        raise AssertionError("nothing is pushed on a quorum")

    def _delay(self, poll: QuorumRequest) -> float:
        world = self._world
        if world.faults_active() and world.chance.random() < world.profile.tail:
            world.invariants.disturbed(poll.request)
            return min(4.0, 0.02 / (1.0 - world.chance.random()))
        return TICK_S + min(20.0, -log(1.0 - world.chance.random())) * world.profile.latency

    def _lost(self, poll: QuorumRequest) -> bool:
        world = self._world
        if world.faults_active() and world.chance.random() < world.profile.loss:
            world.fault("message lost")
            world.invariants.disturbed(poll.request)
            return True
        return False

    def _send(self, poll: QuorumRequest, node: SimNode) -> None:
        world = self._world
        if self._lost(poll):
            return
        world.timeline.at(world.timeline.now + self._delay(poll), self._arrive, poll, node, False)
        if world.faults_active() and world.chance.random() < world.profile.duplication:
            world.fault("message doubled")
            world.invariants.disturbed(poll.request)
            later = self._delay(poll) + world.chance.random() ** 3 * 4.0
            world.timeline.at(world.timeline.now + later, self._arrive, poll, node, True)

    def _arrive(self, poll: QuorumRequest, node: SimNode, again: bool) -> None:
        world = self._world
        if node.stopped_until > world.timeline.now:
            world.invariants.disturbed(poll.request)
            world.timeline.at(node.stopped_until + TICK_S, self._arrive, poll, node, again)
            return
        if self._runs[node.index] != node.model.run:
            self._runs[node.index] = node.model.run
            node.greet()
            if not again and poll.request.verb != "hello":
                world.invariants.disturbed(poll.request)
                world.timeline.at(world.timeline.now + TICK_S, self._give_up, poll, node)
                return
        said = node.carry_out(poll.request)
        if poll.done or self._lost(poll):
            return
        self._process.receive(world.timeline.now + self._delay(poll), self._hear, poll, node, said)

    def _give_up(self, poll: QuorumRequest, node: SimNode) -> None:
        self._process.receive(self._world.timeline.now + self._delay(poll), self._hear, poll, node, None)

    def _hear(self, poll: QuorumRequest, node: SimNode, said: Any) -> None:
        if poll.done or node.index in poll.heard:
            return
        poll.heard.add(node.index)
        if said is None:
            poll.tally.ailing = True
            done = poll.tally.miss(str(node.index), "it restarted")
        else:
            done = poll.tally.add(node.index, said)
        if done:
            poll.finish()

    def _time_out(self, poll: QuorumRequest) -> None:
        if poll.done:
            return
        self._world.invariants.disturbed(poll.request)
        for node in self._world.nodes:
            if poll.tally.left and node.index not in poll.heard and poll.request.only in (None, node.index):
                poll.tally.ailing = True
                poll.tally.miss(str(node.index), "no answer in time")
        poll.finish()
