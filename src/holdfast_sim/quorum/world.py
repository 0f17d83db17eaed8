"""One seed of the quorum: nodes, processes with calendars of their own, and faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from holdfast._core.flow import Flow, Shield, Sleep
from holdfast.backends.redlock.backend import RedlockBackend
from holdfast.backends.redlock.fanout import Fanout
from holdfast.backends.redlock.quorum import Quorum
from holdfast.backends.redlock.records import LISTENS_DIGITS_COUNT
from holdfast.errors import BackendUnavailable, LeaseLost, NotAcquired
from holdfast.model import LockSpec, Promises

from ..driver import Task, TaskCancelled
from ..process import Process
from ..timeline import Timeline
from ..violation import Violation
from .invariants import QuorumInvariants
from .node import NodeModel
from .wire import QuorumWire

EPOCH_S = 1_700_000_000.0
RATE_ERROR_RATIO = 0.0049
LONGEST_TTL_S = 2.0
SNAPSHOT_RATIO = 0.7  # of restarts


@dataclass(frozen=True, slots=True)
class QuorumFaultProfile:
    """Chances are per message; counts are for the whole seed."""

    faults_end_at: float
    latency: float = 0.001
    tail: float = 0.0
    loss: float = 0.0
    duplication: float = 0.0
    stops: int = 0
    crashes: int = 0
    stalls: int = 0
    restarts: int = 0
    cancel_ratio: float = 0.0

    def stop_length(self, chance: Random) -> float:
        return min(6.0, 0.05 / (1.0 - chance.random()))


def draw_profile(chance: Random) -> QuorumFaultProfile:
    faults_end_at = chance.uniform(4.0, 12.0)
    cancel_ratio = chance.choice((0.0, 0.2))
    if chance.random() < 0.2:
        return QuorumFaultProfile(faults_end_at, cancel_ratio=cancel_ratio)

    def some(*values: float) -> float:
        return chance.choice(values) if chance.random() < 0.5 else 0

    return QuorumFaultProfile(
        faults_end_at,
        latency=chance.choice((0.0005, 0.002, 0.008)),
        tail=some(0.02, 0.1, 0.2),
        loss=some(0.02, 0.1, 0.3),
        duplication=some(0.05, 0.3),
        stops=int(some(2, 5)),
        crashes=int(some(1)),
        stalls=int(some(2, 5)),
        restarts=int(some(2, 5, 9)),
        cancel_ratio=cancel_ratio,
    )


class SimNode:
    """A node with its own clock. It may hang, and it may restart: empty, or from an old snapshot."""

    def __init__(self, world: QuorumWorld, index: int, rate: float) -> None:
        self._world = world
        self.index = index
        self._rate = rate
        self._runs = 0
        self.model = NodeModel(f"{index:040x}", self._publish)
        self._snapshot: tuple[dict[str, tuple[str, int | None]], dict[str, int]] = ({}, {})
        self.stopped_until = 0.0

    @property
    def now(self) -> int:
        return int((EPOCH_S + self._world.timeline.now * self._rate) * 1e6)

    def carry_out(self, request: Fanout) -> Any:
        said = self.model.carry_out(request.verb, request.keys, request.args, self.now)
        self._world.trace(f"n{self.index}", "{} {} {}: {}", request.verb, request.keys, request.args, said)
        if request.verb in ("take", "extend"):
            for key in request.keys:
                if "/hold/" in key:
                    self._world.invariants.looked_at(key)
        return said

    def _publish(self, channel: str, owner: str) -> int:
        process = self._world.processes[int(channel[-LISTENS_DIGITS_COUNT:], 16)]
        wire: Any = process.wire
        return int(wire.told(self, owner))

    def greet(self) -> None:
        args = (f"{self._world.chance.getrandbits(64):016x}", f"{int(LONGEST_TTL_S * 1e6):016d}", "0")
        self.model.carry_out("hello", ("q/marks",), args, self.now)

    def held(self, key: str) -> str | None:
        self.model.now = self.now
        hold = self.model.get(key)
        return hold if hold is not None and self.model.is_live(key, hold) else None

    def save(self) -> None:
        self._snapshot = (dict(self.model.texts), dict(self.model.marks))

    def stall(self, seconds: float) -> None:
        self._world.fault("node hangs")
        self.stopped_until = max(self.stopped_until, self._world.timeline.now + seconds)

    def restart(self) -> None:
        """Only while all others have their data: the protocol does not promise to survive two losses at a time."""
        if any(node.forgetful for node in self._world.nodes):
            return
        self._world.fault("node restarts")
        self._world.trace(f"n{self.index}", "restarts")
        self._runs += 1
        self.model = NodeModel(f"{self._runs:08x}{self.index:032x}", self._publish)
        if self._world.chance.random() < SNAPSHOT_RATIO:
            self.model.texts, self.model.marks = dict(self._snapshot[0]), dict(self._snapshot[1])
            self._world.invariants.brought_back(text for key, (text, _) in self.model.texts.items() if "/hold/" in key)

    @property
    def forgetful(self) -> bool:
        memory = self.model.texts.get("q/marks/memory", ("", None))[0]
        return not memory.startswith("+") or memory[37:77] != self.model.run


class QuorumWorld:
    """Built from a seed. A `Process` uses it as its world."""

    def __init__(self, seed: int, tell: Any = None) -> None:
        self.chance = chance = Random(seed)
        self.profile = profile = draw_profile(chance)
        self.timeline = Timeline()
        self.counts: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self._tell = tell
        count = chance.choice((3, 3, 5))
        self.majority = count // 2 + 1
        self.nodes = [SimNode(self, index, self._rate()) for index in range(count)]
        self.invariants: Any = QuorumInvariants(self)
        self.processes: list[Process] = []
        for number in range(chance.randint(2, 4)):
            self.backend = self._backend(number, count, chance.choice((0.0, 0.0, 5.0, -5.0, 1e6)))
            process = Process(self, number, self._rate(), chance.uniform(100.0, 1000.0))  # type: ignore[arg-type]
            process.wire = QuorumWire(self, process)  # type: ignore[assignment]
            self.processes.append(process)
            for script in range(chance.randint(1, 2)):
                QuorumWorker(self, process, script)
        self._schedule_faults(profile)

    def _backend(self, number: int, nodes: int, ahead: float) -> RedlockBackend:
        jump, at = self.chance.choice((0.0, -10.0, 100.0)), self.chance.uniform(0.0, 8.0)

        def calendar() -> int:
            now = self.timeline.now
            return int((EPOCH_S + now + ahead + (jump if now > at else 0.0)) * 1e6)

        timeout = self.chance.choice((0.02, 0.1))
        quorum = Quorum(tuple(map(str, range(nodes))), "q", "sim", timeout, LONGEST_TTL_S, 1.0)
        return RedlockBackend(quorum, Promises(frozenset({"fencing"})), calendar, f"{number:0{LISTENS_DIGITS_COUNT}x}")

    def _schedule_faults(self, profile: QuorumFaultProfile) -> None:
        chance = self.chance

        def enter(times: int, fault: Any, *draws: Any) -> None:
            for _ in range(times):
                self.timeline.at(chance.uniform(0.1, profile.faults_end_at), fault(), *(draw() for draw in draws))

        def length() -> float:
            return profile.stop_length(chance)

        enter(profile.stops, lambda: chance.choice(self.processes).stop, length)
        enter(profile.crashes, lambda: chance.choice(self.processes).crash)
        enter(profile.stalls, lambda: chance.choice(self.nodes).stall, length)
        for _ in range(profile.restarts):
            node, (saved, restarted) = chance.choice(self.nodes), sorted(chance.uniform(0.1, 10.0) for _ in "12")
            self.timeline.at(saved, node.save)
            self.timeline.at(restarted, node.restart)

    def _rate(self) -> float:
        return 1.0 + self.chance.uniform(-RATE_ERROR_RATIO, RATE_ERROR_RATIO)

    def faults_active(self) -> bool:
        return self.timeline.now < self.profile.faults_end_at

    def fault(self, kind: str) -> None:
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def trace(self, who: str, what: str, *args: Any) -> None:
        if self._tell is not None:
            self._tell(self.timeline.now, who, what.format(*args))


class QuorumWorker:
    """What one task of a client does: acquire, hold, release; sometimes cancelled."""

    def __init__(self, world: QuorumWorld, process: Process, number: int) -> None:
        self._world = world
        self._process = process
        self._actor = process.core.actor(number)
        self._busy = False
        process.scripts += 1
        self._task: Task = process.spawn(self._script(), f"script {number}")

    def _script(self) -> Flow[None]:
        chance = self._world.chance
        for _ in range(chance.randint(4, 9)):
            yield Sleep(chance.random() ** 2 * 2.0)
            if chance.random() < self._world.profile.cancel_ratio:
                self._process.after(chance.random() ** 3, self._cancel)
            self._busy = True
            try:
                yield from self._round()
            except TaskCancelled:
                self._world.count("cancelled")
            self._busy = False

    def _cancel(self) -> None:
        if self._busy:
            self._task.cancel()

    def _round(self) -> Flow[None]:
        world, process, chance = self._world, self._process, self._world.chance
        spec = LockSpec(chance.choice(("a", "a", "b")), ttl=chance.choice((0.3, 1.0, 2.0)), renew=chance.random() < 0.8)
        timeout = chance.choice((None, 0.0, 0.3, 1.0))
        before = next(process.core._numbers)  # the owner that comes next is known by its number
        owner = f"{process.name}-{before + 1:x}"
        try:
            hold = yield from process.core.obtain(spec, timeout, self._actor)
        except (NotAcquired, BackendUnavailable):
            world.count("not acquired")
            world.invariants.ended(owner)
            return
        except TaskCancelled:
            world.invariants.ended(owner)
            raise
        world.invariants.acquired(process, hold)
        try:
            yield Sleep(chance.random() ** 2 * 3.0)
            if chance.random() < 0.3:
                yield from process.core.renew(hold)
        except (LeaseLost, BackendUnavailable):
            world.count("lost")
        except TaskCancelled:
            yield Shield(process.core.let_go(hold))
            world.invariants.ended(hold.claim.owner)
            raise
        yield from process.core.let_go(hold)
        world.invariants.ended(hold.claim.owner)


@dataclass(slots=True)
class QuorumOutcome:
    """The result of a seed."""

    seed: int
    invariant: str = ""
    story: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)


def run(seed: int, tell: Any = None) -> QuorumOutcome:
    """Run a seed."""
    world = QuorumWorld(seed, tell)
    outcome = QuorumOutcome(seed, counts=world.counts, faults=world.faults)
    try:
        _live(world)
    except Violation as violation:
        outcome.invariant, outcome.story = violation.invariant, violation.story
    return outcome


def _live(world: QuorumWorld) -> None:
    timeline = world.timeline
    until, limit = 0.0, world.profile.faults_end_at + 120.0
    while any(process.scripts for process in world.processes) and until < limit:
        until += 0.05
        timeline.run(until)
    stuck = [process.name for process in world.processes if process.scripts]
    if stuck:
        raise Violation("nobody waits for ever", f"{', '.join(stuck)} did not come to an end")
    timeline.run(until + 0.1)
    world.invariants.at_rest()
    end = max(until, world.profile.faults_end_at) + 8.0 + 2 * LONGEST_TTL_S
    timeline.at(end, world.invariants.at_the_end)
    timeline.run(end)
