"""Partitions side by side: what happens to the shards of a group when a member joins, leaves, or is killed.

1. Each member is a process, and tells when its work on a shard may begin and has ended, on one clock for all.
2. An event is over when every shard is owned, and the shares of the members that live differ by one at most.
3. A shard is idle from the end of the work on it (the kill, of one that was killed) to the start by its next owner.
4. Counts and waits are what differs here, so contenders come one after the other.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from bench import registry
from bench.model import Target
from bench.progress import say
from bench.tool_model import PartitionContender, PartitionPlan
from bench.tool_outcomes import PartitionResult
from bench.trial import told_error

PLAN = PartitionPlan(members=8, shards=64, ttl=6.0)
HANG_S = 180.0
REST_S = 1.0
"""Between an event and the next, so that nothing is still moving."""


class MemberFailed(Exception):
    """A member could not be one; the text says why."""


class ShardEvent(NamedTuple):
    """What a member has told."""

    at: float
    member: int
    what: str
    shard: int


class Effects(NamedTuple):
    """What an event did to the shards."""

    interrupted: int
    idle_longest: float
    idle_total: float
    overlaps: int


@dataclass(slots=True)
class MemberGroup:
    """The processes, what they own by what they have told, and all that was told since `clear`."""

    engine: str
    contender: PartitionContender
    target: Target
    plan: PartitionPlan
    owners: dict[int, int] = field(default_factory=dict)
    told: list[ShardEvent] = field(default_factory=list)
    joined: dict[int, float] = field(default_factory=dict)
    """When each of those that live began to join."""
    _pipes: dict[int, Connection] = field(default_factory=dict)
    _processes: list[BaseProcess] = field(default_factory=list)

    def join(self) -> int:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        number = len(self._processes)
        words = (theirs, self.engine, self.contender.name, self.target, self.plan)
        process = spawn.Process(target=_live, args=words, daemon=True)
        process.start()
        theirs.close()
        self._processes.append(process)
        self._pipes[number] = ours
        return number

    def leave(self, number: int) -> float:
        self.joined.pop(number)
        self._pipes[number].send("leave")
        return time.monotonic()

    def kill(self, number: int) -> float:
        self.joined.pop(number)
        self._processes[number].kill()
        self._processes[number].join()
        killed = time.monotonic()
        owned = [shard for shard, owner in self.owners.items() if owner == number]
        self.told += [ShardEvent(killed, number, "end", shard) for shard in owned]
        return killed

    def settle(self, members: int) -> float:
        """Until so many own all shards in equal shares: when that was."""
        end = time.monotonic() + HANG_S
        while True:
            live = list(self.joined)
            counts = [list(self.owners.values()).count(member) for member in live]
            if len(live) == members and sum(counts) == self.plan.shards and max(counts) - min(counts) <= 1:
                return max((each.at for each in self.told), default=0.0)
            if time.monotonic() > end:
                raise MemberFailed(f"not settled within {HANG_S:.0f} s: {len(live)} members own {counts} shards")
            self.hear(0.1)

    def rest(self) -> None:
        end = time.monotonic() + REST_S
        while (left := end - time.monotonic()) > 0:
            self.hear(left)
        self.told.clear()

    def hear(self, timeout: float) -> None:
        numbers = {pipe: number for number, pipe in self._pipes.items()}
        for pipe in connection.wait(list(numbers), timeout):
            assert isinstance(pipe, Connection)
            try:
                at, what, shard = pipe.recv()
            except EOFError:
                del self._pipes[numbers[pipe]]
                continue
            if what == "failed":
                raise MemberFailed(shard)
            self._note(ShardEvent(at, numbers[pipe], what, shard))

    def _note(self, event: ShardEvent) -> None:
        if event.what == "joins":
            self.joined[event.member] = event.at
            return
        self.told.append(event)
        if event.what == "start":
            self.owners[event.shard] = event.member
        elif self.owners.get(event.shard) == event.member:
            del self.owners[event.shard]

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()


def measure(engine: str, contender: PartitionContender, target: Target, plan: PartitionPlan) -> list[PartitionResult]:
    group, found = MemberGroup(engine, contender, target, plan), []

    def event(what: str, members: int, began: Callable[[], float], least: int) -> None:
        say(f"partitions: {contender.name}, {what}")
        group.told.clear()
        before = dict(group.owners)
        at = began()
        settled = group.settle(members)
        moved = sum(group.owners[shard] != before.get(shard) for shard in range(plan.shards))
        effects = find_effects(group.told, before)
        counts = (plan.members, plan.shards, plan.ttl, moved, least, effects.interrupted)
        waits = (settled - at, effects.idle_longest, effects.idle_total, effects.overlaps)
        found.append(PartitionResult(contender.name, contender.role, what, *counts, *waits, contender.note))
        group.rest()

    def joins() -> float:
        number, end = group.join(), time.monotonic() + HANG_S
        while number not in group.joined and time.monotonic() < end:
            group.hear(0.1)
        return group.joined[number]

    def owned_by(number: int) -> int:
        return list(group.owners.values()).count(number)

    try:
        for _ in range(plan.members):
            group.join()
        group.settle(plan.members)
        group.rest()
        event("one joins", plan.members + 1, joins, plan.shards // (plan.members + 1))
        event("one leaves", plan.members, lambda: group.leave(0), owned_by(0))
        event("one is killed", plan.members - 1, lambda: group.kill(1), owned_by(1))
    finally:
        group.close()
    return found


def find_effects(told: Sequence[ShardEvent], owners: dict[int, int]) -> Effects:
    """What is told of shards, whose owners were these before."""
    working = {shard: {owner} for shard, owner in owners.items()}
    idle_since: dict[int, float] = {}
    idle: list[float] = []
    interrupted: set[int] = set()
    overlaps: set[int] = set()
    for event in sorted(told, key=lambda each: (each.at, each.what)):  # of one moment, an end comes before a start
        busy = working.setdefault(event.shard, set())
        if event.what == "start":
            if busy - {event.member}:
                overlaps.add(event.shard)
            busy.add(event.member)
            if event.shard in idle_since:
                idle.append(event.at - idle_since.pop(event.shard))
        elif event.member in busy:
            busy.remove(event.member)
            interrupted.add(event.shard)
            if not busy:
                idle_since[event.shard] = event.at
    return Effects(len(interrupted), max(idle, default=0.0), sum(idle), len(overlaps))


def _live(pipe: Connection, engine: str, name: str, target: Target, plan: PartitionPlan) -> None:
    """The life of a member."""
    over, sending = threading.Event(), threading.Lock()

    def tell(what: str, shard: int) -> None:
        with sending:
            pipe.send((time.monotonic(), what, shard))

    def listen() -> None:
        try:
            pipe.recv()
        except EOFError:
            pass
        over.set()

    threading.Thread(target=listen, daemon=True).start()
    contender = next(each for each in registry.partitions(engine) if each.name == name)
    if error := told_error(lambda: contender.member(target, plan, tell, over)):
        pipe.send((time.monotonic(), "failed", error))
