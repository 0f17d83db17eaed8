"""One seed: a world is built, lives, and is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from .asking import draw_kinds
from .network import LONGEST
from .violation import Violation
from .weather import forecast, let_loose
from .workload import Worker
from .world import Teller, World

PATIENT = 400.0
"""How long after the weather has cleared everything must have come to its end, in seconds."""


@dataclass(slots=True)
class Outcome:
    """What became of a seed."""

    seed: int
    events: int = 0
    operations: int = 0
    seconds: float = 0.0
    """Of virtual time."""
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    invariant: str = ""
    """The one that was broken, if any."""
    story: str = ""


def run(seed: int, tell: Teller | None = None) -> Outcome:
    """Live through a seed."""
    chance = Random(seed)
    weather = forecast(chance)
    kinds = draw_kinds(chance)
    world = World(chance, weather, chance.randint(2, 4), tell)
    world.trace("weather", "{}", weather)
    world.trace("names", "{}", kinds)
    for process in world.processes:
        for number in range(chance.randint(1, 3)):
            Worker(process, number, kinds)
    let_loose(world)
    outcome = Outcome(seed)
    try:
        _live(world)
    except Violation as violation:
        outcome.invariant, outcome.story = violation.invariant, violation.story
        world.trace("VIOLATION", "{}", violation)
    outcome.events = world.timeline.events
    outcome.operations = world.operations
    outcome.seconds = world.timeline.now
    outcome.counts, outcome.faults = world.counts, world.faults
    return outcome


def _live(world: World) -> None:
    ended = world.timeline.run(world.weather.clears_at + LONGEST + PATIENT)
    stuck = [process.name for process in world.processes if process.scripts]
    if stuck:
        raise Violation("nobody waits for ever", f"{', '.join(stuck)} did not come to an end")
    if not ended:
        raise Violation("nobody waits for ever", "something is still under way")
    world.watch.at_the_end()
