"""Between one process and all nodes. Each message to each node may be late, lost, duplicated or out of order.

1. A connection never outlives a run of its node: a message that reaches another run is lost, and the handshake
   (`hello`) comes before anything else.
2. A request is answered when it is decided, or after its timeout; a later reply is dropped.
3. What nodes tell may be late or lost as well; a majority wakes whoever waits, and so does the time after the first.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from holdfast.backends.redlock.fanout import HEARD, SENT, Fanout, Tally
from holdfast.backends.redlock.notifications import RESERVED_S
from holdfast.backends.redlock.replies import SOON_S

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


class SimTurn:
    """Somebody who waits to be told."""

    __slots__ = ("epoch", "task", "told")

    def __init__(self, task: Task, told: set[int]) -> None:
        self.task = task
        self.epoch = task.epoch
        self.told = told


class QuorumWire:
    """One process's connections."""

    def __init__(self, world: QuorumWorld, process: Process) -> None:
        self._world = world
        self._process = process
        self._runs = [""] * len(world.nodes)
        self._turns: dict[str, SimTurn] = {}
        self._early: dict[str, set[int]] = {}

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
        turn = self._turns[owner] = SimTurn(task, self._early.pop(owner, set()))
        self._process.after(timeout, self._wake, owner, turn)
        self._look_at(owner, turn)

    def told(self, node: SimNode, owner: str) -> int:
        """A node tells an owner of this process. Answers whether there is anybody to hear it."""
        world = self._world
        if self._process.crashed or self._runs[node.index] != node.model.run:
            return 0
        if not (world.faults_active() and world.chance.random() < world.profile.loss):
            delay = TICK_S + min(20.0, -log(1.0 - world.chance.random())) * world.profile.latency
            self._process.receive(world.timeline.now + delay, self._hear_turn, node, owner)
        return 1

    def _hear_turn(self, node: SimNode, owner: str) -> None:
        if (turn := self._turns.get(owner)) is None:
            self._early.setdefault(owner, set()).add(node.index)
            return
        turn.told.add(node.index)
        self._look_at(owner, turn)

    def _look_at(self, owner: str, turn: SimTurn) -> None:
        if len(turn.told) >= self._world.majority:
            self._wake(owner, turn)
        elif len(turn.told) == 1:
            self._process.after(RESERVED_S * (1 + self._world.chance.random()), self._wake, owner, turn)

    def _wake(self, owner: str, turn: SimTurn) -> None:
        if self._turns.get(owner) is turn:
            del self._turns[owner]
            turn.task.wake(turn.epoch, None)

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
        elif poll.request.until is HEARD and poll.tally.decided():
            self._process.after(SOON_S, poll.finish)

    def _time_out(self, poll: QuorumRequest) -> None:
        if poll.done:
            return
        self._world.invariants.disturbed(poll.request)
        for node in self._world.nodes:
            if poll.tally.left and node.index not in poll.heard and poll.request.only in (None, node.index):
                poll.tally.ailing = True
                poll.tally.miss(str(node.index), "no answer in time")
        poll.finish()
