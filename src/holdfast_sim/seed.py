"""One seed: build a world, run it to its end, and check the invariants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from .faults import draw_profile, schedule_faults
from .network import LONGEST_DELAY_S
from .violation import Violation
from .workload import SimWorker
from .workload_recipes import draw_kinds
from .world import Teller, World

SETTLE_LIMIT_S = 400.0
"""How long after the last fault everything must have ended."""


@dataclass(slots=True)
class Outcome:
    """The result of a seed."""

    seed: int
    events: int = 0
    operations: int = 0
    seconds: float = 0.0
    """Of virtual time."""
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    invariant: str = ""
    """The invariant that was broken, if any."""
    story: str = ""


def run(seed: int, tell: Teller | None = None) -> Outcome:
    """Run a seed."""
    chance = Random(seed)
    profile = draw_profile(chance)
    kinds = draw_kinds(chance)
    world = World(chance, profile, chance.randint(2, 4), tell)
    world.trace("profile", "{}", profile)
    world.trace("names", "{}", kinds)
    for process in world.processes:
        for number in range(chance.randint(1, 3)):
            SimWorker(process, number, kinds)
    schedule_faults(world)
    return live(seed, world)


def live(seed: int, world: World, at_the_end: Callable[[], None] | None = None) -> Outcome:
    """Run a world to its end, and check what is left."""
    outcome = Outcome(seed)
    try:
        _run_to_end(world)
        if at_the_end is not None:
            at_the_end()
    except Violation as violation:
        outcome.invariant, outcome.story = violation.invariant, violation.story
        world.trace("VIOLATION", "{}", violation)
    outcome.events = world.timeline.events
    outcome.operations = world.operations
    outcome.seconds = world.timeline.now
    outcome.counts, outcome.faults = world.counts, world.faults
    return outcome


def _run_to_end(world: World) -> None:
    ended = world.timeline.run(world.profile.faults_end_at + LONGEST_DELAY_S + SETTLE_LIMIT_S)
    stuck = [process.name for process in world.processes if process.scripts]
    if stuck:
        raise Violation("nobody waits for ever", f"{', '.join(stuck)} did not come to an end")
    if not ended:
        raise Violation("nobody waits for ever", "something is still under way")
    world.invariants.at_the_end()
