"""Tellers and workers of actors on a lossy network; clocks drift, processes stop and crash, locks are evicted.

The flows that ship (`recipes.actor_inbox`, `recipes.actor_worker`) run in a world of a seed, as an activation runs
them: hold the actor's lock, claim the actor, acknowledge message by message. The effect of a message is its id in the
state, with the token of its worker. Checked, besides all invariants of the world:

1. What was told has its effect once; what may have been told, once at most; in the order of its teller.
2. An acknowledgement that was accepted stands: its effect is there in the end.
3. The tokens of an actor's effects, and its mark, never go back.
4. Versions of records strictly grow, and nobody writes over a version that it has not read.
5. Once the faults are over, every message is handled.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from holdfast._core.flow import NOW, Flow, Sleep
from holdfast._core.lease import Hold
from holdfast.errors import BackendUnavailable, FenceRejected, LeaseLost, NotAcquired
from holdfast.recipes import actor_inbox, actor_worker
from holdfast.recipes import specs as recipes
from holdfast.recipes.actor_options import ActorPlan, plan_actors
from holdfast.recipes.actor_record import ActorRecord, Handled, InboxMessage

from .faults import draw_profile, restart_and_remember, schedule_faults
from .network import LONGEST_DELAY_S
from .seed import Outcome, live
from .violation import Violation
from .world import Teller, World

if TYPE_CHECKING:
    from .process import Process

CALM_S = 30.0
"""So long after the last fault everything is handled."""
MESSAGES_COUNT = 6


class ActorEffects:
    """What was told and acknowledged, and what became of it."""

    def __init__(self, world: World, plan: ActorPlan, keys: list[str]) -> None:
        self.world, self.plan, self.keys = world, plan, keys
        self.told: dict[str, list[str]] = {key: [] for key in keys}
        self.acknowledged: dict[str, list[list[Any]]] = {key: [] for key in keys}

    def check(self) -> None:
        """At the end."""
        for key in self.keys:
            stored = self.world.engine.store.records.get(self.plan.record_of(key))
            record = ActorRecord() if stored is None else ActorRecord.decode(stored)  # type: ignore[arg-type]
            if record.waiting:
                raise Violation("no message is forgotten", f"{key} has {record.waiting} messages, and no worker")
            self._check_effects(key, json.loads(record.state) or [])

    def _check_effects(self, key: str, effects: list[list[Any]]) -> None:
        names = [name for name, _ in effects]
        places = {name: number for number, name in enumerate(names)}
        told = self.told[key]
        if len(places) < len(names):
            raise Violation("an effect is done once", f"the state of {key} is {names}")
        if lost := [name for name in told if name not in places]:
            raise Violation("no effect is lost", f"{lost} were told to {key}, whose state is {names}")
        if ghosts := [effect for effect in self.acknowledged[key] if effect not in effects]:
            raise Violation("no zombie is believed", f"{ghosts} were acknowledged to {key}, whose state is {effects}")
        for earlier, later in pairwise(told):
            if earlier.rpartition("-")[0] == later.rpartition("-")[0] and places[earlier] > places[later]:
                raise Violation("messages stay in order", f"{later} overtook {earlier} in {key}")
        tokens = [token for _, token in effects]
        if tokens != sorted(tokens):
            raise Violation("no zombie is believed", f"the tokens of the effects on {key} are {tokens}")


class SimActors:
    """One process: a teller, and a worker."""

    def __init__(self, process: Process, effects: ActorEffects) -> None:
        self.process, self.world, self.chance = process, process.world, process.world.chance
        self._effects, self._plan = effects, effects.plan
        process.scripts += 2
        process.spawn(self._tell(), "script teller")
        self._task = process.spawn(self._work(), "script worker")

    def _tell(self) -> Flow[None]:
        chance = self.chance
        for number in range(chance.randint(0, MESSAGES_COUNT)):
            yield Sleep(chance.random() ** 2 * 2.0)
            key, name = chance.choice(self._effects.keys), f"{self.process.name}-{number}"
            message = InboxMessage(name, json.dumps(name))
            try:
                yield from actor_inbox.tell(self.process.core, self._plan, key, message, None)
            except BackendUnavailable as error:
                self.world.trace(self.process.name, "does not know whether {} was told: {}", name, error)
            else:
                self.world.count("messages told")
                self._effects.told[key].append(name)

    def _work(self) -> Flow[None]:
        until = self.world.profile.faults_end_at + LONGEST_DELAY_S + CALM_S
        while self.world.timeline.now < until:
            yield Sleep(self.chance.random() * 0.5)
            try:
                yield from self._look()
            except BackendUnavailable:
                continue

    def _look(self) -> Flow[None]:
        core, plan = self.process.core, self._plan
        page = yield from actor_worker.ready(core, plan, "")
        for found in page:
            if not actor_worker.is_ready(found):
                continue
            key = found.key[len(plan.ready_prefix) :]
            outer, self._task.owners = self._task.owners, {}
            try:
                hold = yield from core.obtain(recipes.mutex(plan.lock_of(key), {"ttl": plan.ttl}), 0.0, core.actor(1))
            except (NotAcquired, LeaseLost):
                continue
            finally:
                claims, self._task.owners = list(self._task.owners.values()), outer
            self.world.invariants.acquired(self.process, hold)
            try:
                yield from self._handle_all(key, found.version, hold)
            except (FenceRejected, BackendUnavailable, LeaseLost) as error:
                self.world.count("workers refused" if isinstance(error, FenceRejected) else "given up")
                self.world.trace(self.process.name, "stops working on {}: {}", key, error)
            self.world.invariants.letting_go(self.process, hold)
            yield from core.let_go(hold)
            self.world.invariants.ended(claims, at_once=False)

    def _handle_all(self, key: str, ready_version: int, hold: Hold) -> Flow[None]:
        core, plan, chance = self.process.core, self._plan, self.chance
        claimed = yield from actor_worker.claim(core, plan, key, ready_version, hold.token, hold.claim.owner)
        while True:
            record, limit = claimed.record, chance.randint(1, 3) if hold.over((yield NOW)) is None else 0
            if count := min(record.waiting, record.begun):
                effects = yield from self._handle(record, chance.randint(1, count), hold.token)
                text = json.dumps([*(json.loads(record.state) or []), *effects])
                handled = [Handled(name) for name, _ in effects]
                yield from actor_worker.acknowledge(core, plan, claimed, text, handled, limit)
                self._effects.acknowledged[key] += effects
            elif record.waiting and limit:
                yield from actor_worker.acknowledge(core, plan, claimed, record.state, (), limit)
            else:
                break
        yield from actor_worker.let_go(core, plan, claimed)

    def _handle(self, record: ActorRecord, count: int, token: int) -> Flow[list[list[Any]]]:
        """The effects of the first messages."""
        effects, offset = list[list[Any]](), 0
        for _ in range(count):
            message, offset = record.message_at(offset)
            yield Sleep(self.chance.random() ** 3 * self._plan.ttl)
            yield NOW  # the handler: it may be stopped here for longer than its ttl
            effects.append([json.loads(message.body), token])
            self.world.count("messages handled")
        return effects


def run_actors(seed: int, tell: Teller | None = None) -> Outcome:
    """Run a seed."""
    chance = Random(seed)
    profile = draw_profile(chance)
    world = World(chance, replace(profile, restarts=0), chance.randint(3, 5), tell)
    ttl = chance.choice((0.2, 0.5, 1.0, 2.0))
    plan = plan_actors("a", ttl=ttl, concurrency=1, capacity=100, tries=1000, backoff=0.0)
    effects = ActorEffects(world, plan, [f"k{number}" for number in range(chance.randint(1, 2))])
    for process in world.processes:
        SimActors(process, effects)
    schedule_faults(world)
    restart_and_remember(world, profile.restarts)
    return live(seed, world, effects.check)
