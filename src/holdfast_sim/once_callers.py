"""Callers of a `once` on a lossy network; clocks drift, processes stop and crash, calls are cancelled.

The flows that ship (`recipes.once`) run in a world of a seed. Whoever is to do the work claims the fence of the
resource with its attempt's token, looks whether the effect is there, and writes it. Checked, besides all invariants of
the world:

1. The effect is written once ("the fence loses nothing": the counter of a key is raised from 0 to 1).
2. All callers are told the same result, and whoever is told one finds the effect there.
3. Versions of records strictly grow, and nobody writes over a version that it has not read.
4. No key is stuck: once the faults are over, the next caller has a result.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from holdfast._core.flow import NOW, Call, Flow, Shield, Sleep
from holdfast.errors import BackendUnavailable, FenceRejected
from holdfast.recipes import once
from holdfast.recipes.once_options import OncePlan, plan_once
from holdfast.recipes.once_record import ENDED, Origin

from .driver import Task, TaskCancelled
from .faults import draw_profile, restart_and_remember, schedule_faults
from .resource import ClaimRead, FencedWrite
from .seed import Outcome, live
from .violation import Violation
from .workload_steps import RESOURCE_TIMEOUT_S
from .world import Teller, World

if TYPE_CHECKING:
    from .process import Process

KEEP_S = 30 * 86400.0
"""Longer than any jump of the calendar."""
EFFECT_COUNT = 1
"""The value of a key's counter once its effect is there."""


class OnceResults:
    """What callers were told."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._results: dict[str, str] = {}

    def told(self, key: str, result: str) -> None:
        """Rule 2."""
        self._world.count("results told")
        if self._results.setdefault(key, result) != result:
            raise Violation("a key has one result", f"{key} had {self._results[key]!r}, and now {result!r}")
        if self._world.resources.fenced_value(key) != EFFECT_COUNT:
            raise Violation("a result has its effect", f"{key} has the result {result!r}, and no effect")


class SimCaller:
    """One task that calls, again and again."""

    def __init__(self, process: Process, number: int, plan: OncePlan, keys: list[str], results: OnceResults) -> None:
        self.process, self.world, self.chance = process, process.world, process.world.chance
        self._plan, self._keys, self._results = plan, keys, results
        self._actor = process.core.actor(number)
        self._round = 0
        self._calling = False
        process.scripts += 1
        self.task: Task = process.spawn(self._script(), f"script {number}")

    def _script(self) -> Flow[None]:
        chance = self.chance
        for _ in range(chance.randint(2, 8)):
            yield Sleep(chance.random() ** 2 * 2.0)
            self._round += 1
            if chance.random() < self.world.profile.cancel_ratio:
                self.process.after(chance.random() ** 3 * 2.0, self._cancel, self._round)
            yield from self._try(chance.choice(self._keys))
        while self.world.timeline.now < self.world.profile.faults_end_at:
            yield Sleep(1.0)
        for key in self._keys:  # rule 4: whoever is stuck now is "waiting for ever"
            while not (yield from self._try(key)):
                yield Sleep(0.1)

    def _cancel(self, number: int) -> None:
        if self._round == number and self._calling:
            self.world.trace(self.process.name, "{} is cancelled", self.task.label)
            self.task.cancel()

    def _try(self, key: str) -> Flow[bool]:
        """Whether it was told a result."""
        self._calling = True
        try:
            self._results.told(key, (yield from self._call(key)))
            return True
        except (FenceRejected, BackendUnavailable) as error:
            self.world.count("calls failed")
            self.world.trace(self.process.name, "{} fails: {!r}", self.task.label, error)
        except TaskCancelled:
            self.world.count("cancelled")
        finally:
            self._calling = False
        return False

    def _call(self, key: str) -> Flow[str]:
        core, plan = self.process.core, self._plan
        spec = once.AttemptSpec(plan, key, plan.key_of(key), "", None)
        begun: once.Begun = once.Dead(None, 0, None)  # type: ignore[arg-type]
        while isinstance(begun, once.Dead):
            origin = Origin("sim", self.process.number, 0.0)
            begun = yield from once.begin(core, spec, origin, self._actor, lambda running: None, begun.version)
        if isinstance(begun, once.Finished):
            return begun.record.result.decode()
        self.world.count("attempts")
        try:
            yield from self._work(key, begun.hold.token)
        except (FenceRejected, BackendUnavailable, TaskCancelled):
            yield Shield(once.end(core, plan, begun, ENDED, "it failed"))
            raise
        result = f"by {begun.hold.token}"
        try:
            yield from once.complete(core, plan, begun, result.encode())
        except (BackendUnavailable, TaskCancelled):
            yield Shield(core.end(begun.hold))
            raise
        return result

    def _work(self, key: str, token: int) -> Flow[None]:
        """The effect, as a careful program does it: claim, look, write."""
        yield from self._think()
        value = yield Call(ClaimRead(key, token), RESOURCE_TIMEOUT_S)
        yield from self._think()
        if value != EFFECT_COUNT:
            yield Call(FencedWrite(key, token, EFFECT_COUNT), RESOURCE_TIMEOUT_S)
        yield from self._think()

    def _think(self) -> Flow[None]:
        yield Sleep(self.chance.random() ** 3 * self._plan.ttl)
        yield NOW  # it may be stopped here, with its token in hand


def run_once(seed: int, tell: Teller | None = None) -> Outcome:
    """Run a seed."""
    chance = Random(seed)
    profile = draw_profile(chance)
    world = World(chance, replace(profile, restarts=0), chance.randint(3, 5), tell)
    results = OnceResults(world)
    ttl = chance.choice((0.2, 0.5, 1.0, 2.0))
    plan = plan_once(
        "o", keep=KEEP_S, takeover="rerun", ttl=ttl, on_error="retry", wait=None, codec=None, max_bytes=1000
    )
    keys = [f"k{number}" for number in range(chance.randint(1, 6))]
    for process in world.processes:
        for number in range(chance.randint(1, 2)):
            SimCaller(process, number, plan, keys, results)
    schedule_faults(world)
    restart_and_remember(world, profile.restarts)
    return live(seed, world)
