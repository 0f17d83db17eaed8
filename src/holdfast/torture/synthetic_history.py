"""Synthetic runs in virtual time: for the checkers' tests and benchmark, and for a report without an engine.

A correct engine with a line, clients that work and are paused now and then, a resource under one of the disciplines. A
`bug` plants one mistake; without one, every checker but `overlap` (and `updates`, where the resource is not fenced)
must find nothing, whatever the seed.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .history import Commit, Discipline, FaultRecord, Final, History, Leftover, Operation, Outcome, Run, Verb

Bug: TypeAlias = Literal["", "double-grant", "same-token", "token-back", "overtake", "open-fence", "left-behind"]
BUGS: tuple[Bug, ...] = ("double-grant", "same-token", "token-back", "overtake", "open-fence", "left-behind")
Steps: TypeAlias = Generator["int | SyntheticClaim", None, None]
"""What a client does: yields how long it takes, or the claim whose grant it waits for."""
NS_PER_MS = 1_000_000
EPOCH_NS = 50_000 * NS_PER_MS


@dataclass(slots=True)
class SyntheticClaim:
    """A place in the line of one name."""

    owner: str
    weight: int
    token: int = 0
    expires: int = 0
    waiter: Steps | None = None


@dataclass(slots=True)
class SyntheticName:
    """One name: its line at the engine, and what is protected by it at the resource."""

    name: str
    capacity: int
    token: int = 0
    line: list[SyntheticClaim] = field(default_factory=list)
    mark: int = 0
    version: int = 0
    counter: int = 0


@dataclass(slots=True)
class SyntheticPlan:
    """The run to make. `pauses` is the share of holds in which the holder sleeps for longer than its ttl."""

    seed: int = 1
    clients: int = 6
    holds: int = 400
    names: int = 2
    ttl: int = 200 * NS_PER_MS
    capacity: int = 1
    pauses: float = 0.04
    discipline: Discipline = "claim-before-read"
    bug: Bug = ""


class SyntheticWorld:
    """Virtual time, one engine, one resource, and everything that is recorded."""

    def __init__(self, plan: SyntheticPlan) -> None:
        self.plan = plan
        self.random = random.Random(f"{plan.seed} {plan.bug}")
        self.now = EPOCH_NS
        self.history = History(
            Run(
                "synthetic", plan.seed, plan.ttl / 1e9, plan.discipline, "made up", clients=plan.clients, began=EPOCH_NS
            )
        )
        self.names = [SyntheticName(f"orders/{number}", plan.capacity) for number in range(plan.names)]
        self.left = plan.holds
        self._versions: dict[int, int] = {}
        self._seqs = itertools.count(1)
        self._due: list[tuple[int, int, Steps]] = []
        self._order = itertools.count()

    def start(self, steps: Steps, after: int = 0) -> None:
        heapq.heappush(self._due, (self.now + after, next(self._order), steps))

    def run(self) -> History:
        while self._due:
            self.now, _, steps = heapq.heappop(self._due)
            try:
                pause = next(steps)
            except StopIteration:
                continue
            if isinstance(pause, SyntheticClaim):
                pause.waiter = steps
            else:
                self.start(steps, pause)
        self._finish()
        return self.history

    def trip(self) -> int:
        """The delay of one message."""
        return int(self.random.expovariate(1 / 0.3) * NS_PER_MS) + NS_PER_MS // 20

    def work(self) -> int:
        return int(self.random.expovariate(1 / 4.0) * NS_PER_MS) + NS_PER_MS // 2

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def planted(self, bug: Bug, share: float = 0.03) -> bool:
        return self.plan.bug == bug and self.chance(share)

    def invoke(self, client: str, verb: Verb, name: str, **facts: Any) -> Operation:
        operation = Operation(client, 1000 + int(client[1:]), next(self._seqs), verb, name, self.now, **facts)
        self.history.operations.append(operation)
        return operation

    def end(self, operation: Operation, outcome: Outcome = "ok", **facts: Any) -> None:
        operation.returned, operation.outcome = self.now, outcome
        for fact, value in facts.items():
            setattr(operation, fact, value)

    # the engine

    def enter(self, name: SyntheticName, owner: str, weight: int) -> SyntheticClaim:
        claim = SyntheticClaim(owner, weight)
        if self.planted("overtake", 0.2):
            name.line.insert(sum(other.token > 0 for other in name.line), claim)
        else:
            name.line.append(claim)
        self.promote(name)
        return claim

    def promote(self, name: SyntheticName) -> None:
        """Remove expired places, then grant from the head of the line as long as they fit."""
        name.line = [claim for claim in name.line if not claim.token or claim.expires > self.now]
        used = 0
        for claim in name.line:
            used += claim.weight
            if used > name.capacity and not self.planted("double-grant"):
                break
            if not claim.token:
                name.token += 0 if name.token and self.planted("same-token") else 1
                claim.token = name.token
                if name.token > 5 and self.planted("token-back"):
                    claim.token = name.token - 4
                claim.expires = self.now + self.plan.ttl
                self.start(self._expire(name), self.plan.ttl + 1)
                if claim.waiter is not None:
                    self.start(claim.waiter)

    def _expire(self, name: SyntheticName) -> Steps:
        yield 0
        self.promote(name)

    def leave(self, name: SyntheticName, claim: SyntheticClaim) -> bool:
        held = claim in name.line and claim.expires > self.now
        if claim in name.line:
            name.line.remove(claim)
        self.promote(name)
        return held

    # the resource

    def commit(
        self, verb: Literal["claim", "write"], operation: Operation, name: SyntheticName, parent: int
    ) -> int | None:
        """The number of the commit, or None if the fence refuses."""
        discipline, token = self.plan.discipline, operation.token
        fenced = discipline == "claim-before-read" or (discipline == "check-on-write" and verb == "write")
        if fenced and token < name.mark and not self.planted("open-fence", 0.5):
            return None
        name.mark = max(name.mark, token) if fenced else name.mark
        number = len(self.history.commits) + 1
        who = (operation.client, operation.process, operation.seq)
        commit = Commit(number, verb, name.name, *who, token, self.now, name.version, parent)
        self.history.commits.append(commit)
        if verb == "write":
            self._versions[number] = parent
            name.version = number
        return number

    def members(self, version: int) -> frozenset[int]:
        found = set()
        while version:
            found.add(version)
            version = self._versions[version]
        return frozenset(found)

    def _finish(self) -> None:
        history = self.history
        history.operations.sort(key=lambda operation: operation.invoked)
        for index, operation in enumerate(history.operations):
            operation.index = index
        for name in self.names:
            members = self.members(name.version)
            history.finals[name.name] = Final(name.name, name.version, len(members), members)
        if self.plan.bug == "left-behind":
            history.left.append(Leftover(self.names[0].name, "o99", 99))
        history.faults.append(FaultRecord("netem", "engine", note="not run: the kernel has no netem"))
        history.ended = self.now


def client(world: SyntheticWorld, me: str) -> Steps:
    """One client: takes a name, reads, works, writes, releases; sometimes it sleeps beyond its lease."""
    plan = world.plan
    while world.left > 0:
        world.left -= 1
        yield world.work()
        name = world.random.choice(world.names)
        weight = world.random.choice((1, plan.capacity)) if plan.capacity > 1 else 1
        patient = world.now + 3_600_000 * NS_PER_MS
        acquire = world.invoke(me, "acquire", name.name, weight=weight, capacity=plan.capacity, until=patient)
        yield world.trip()
        owner = f"{me}-{acquire.seq}"
        claim = world.enter(name, owner, weight)
        if not claim.token:
            yield world.trip()
            until = world.now + 10_000 * NS_PER_MS
            world.end(world.invoke(me, "queued", name.name, of=acquire.seq, until=until))
            if not claim.token:
                yield claim
        yield world.trip()
        world.end(acquire, owner=owner, token=claim.token)
        yield from _hold(world, me, name, claim, acquire)


def _hold(world: SyntheticWorld, me: str, name: SyntheticName, claim: SyntheticClaim, acquire: Operation) -> Steps:
    plan, grant = world.plan, {"of": acquire.seq, "token": acquire.token}
    exclusive = claim.weight == plan.capacity
    if exclusive:
        verb: Verb = "claim" if plan.discipline == "claim-before-read" else "read"
        read = world.invoke(me, verb, name.name, **grant)
        yield world.trip()
        parent = name.version
        refused = verb == "claim" and world.commit("claim", read, name, parent) is None
        yield world.trip()
        world.end(read, *(("fail",) if refused else ()), parent=parent)
        if refused:
            yield from _let_go(world, me, name, claim, grant)
            return
    if world.chance(plan.pauses):
        begin = world.now
        yield plan.ttl + int(world.random.uniform(5, 160) * NS_PER_MS)
        world.history.faults.append(FaultRecord("pause", f"client:{me}", begin, world.now))
    else:
        yield world.work()
    if exclusive:
        write = world.invoke(me, "write", name.name, parent=parent, **grant)
        yield world.trip()
        number = world.commit("write", write, name, parent)
        yield world.trip()
        if number is None:
            world.end(write, "fail", error=f"FenceRejected: token {acquire.token}, mark {name.mark}")
        else:
            world.end(write, version=number)
    yield from _let_go(world, me, name, claim, grant)


def _let_go(world: SyntheticWorld, me: str, name: SyntheticName, claim: SyntheticClaim, grant: dict[str, int]) -> Steps:
    if claim.expires <= world.now:
        world.end(world.invoke(me, "lost", name.name, error="expired", **grant))
    release = world.invoke(me, "release", name.name, **grant)
    yield world.trip()
    held = world.leave(name, claim)
    yield world.trip()
    world.end(release, held=held)


def make_history(plan: SyntheticPlan) -> History:
    """A whole run.

    >>> history = make_history(SyntheticPlan(seed=3, holds=20))
    >>> len([o for o in history.operations if o.verb == "acquire"])
    20
    """
    world = SyntheticWorld(plan)
    for number in range(plan.clients):
        world.start(client(world, f"c{number + 1}"), world.work())
    return world.run()
