"""Which faults a seed has, how often, and when.

Some seeds are calm, so that what must hold at once can be asked for at once; the others mix a few kinds of fault.
All weather clears at some moment: from then on messages arrive, nobody stops or dies, and everything still under
way must come to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from holdfast.backends.execute import Moment
from holdfast.backends.queue_backend import Evict

if TYPE_CHECKING:
    from .world import World


@dataclass(frozen=True, slots=True)
class Weather:
    """Chances are per message; counts are for the whole seed."""

    clears_at: float
    latency: float = 0.001
    request_timeout: float = 0.3
    tail: float = 0.0
    resource_tail: float = 0.0
    """The chance of a message that is very late, on the way to the engine and to the resource."""
    loss: float = 0.0
    push_loss: float = 0.0
    duplication: float = 0.0
    double_within: float = 4.0
    stops: int = 0
    stumbling: int = 0
    """The mean number of looks at the clock between two stops; 0: never."""
    crashes: int = 0
    stalls: int = 0
    restarts: int = 0
    jumps: int = 0
    calendar_jumps: int = 0
    evictions: int = 0
    cancelling: float = 0.0
    """The chance that a round of the workload is cancelled."""

    def steps_between_stumbles(self, chance: Random) -> int:
        return 1 + int(chance.expovariate(1.0 / self.stumbling))

    def stop_length(self, chance: Random) -> float:
        return min(8.0, 0.05 / (1.0 - chance.random()))


def forecast(chance: Random) -> Weather:
    """The weather of a seed."""
    clears_at = chance.uniform(2.0, 8.0)
    cancelling = chance.choice((0.0, 0.1, 0.4))
    if chance.random() < 0.15:
        return Weather(clears_at, cancelling=cancelling)

    def now_and_then(*values: float) -> float:
        return chance.choice(values) if chance.random() < 0.4 else 0

    def some(most: int, how_often: float = 0.3) -> int:
        return chance.randint(1, most) if chance.random() < how_often else 0

    return Weather(
        clears_at,
        latency=chance.choice((0.0005, 0.002, 0.01)),
        request_timeout=chance.choice((0.1, 0.3, 1.0)),
        tail=now_and_then(0.02, 0.1, 0.3),
        resource_tail=now_and_then(0.05, 0.2),
        loss=now_and_then(0.02, 0.1, 0.3),
        push_loss=now_and_then(0.1, 0.5, 1.0),
        duplication=now_and_then(0.05, 0.2, 0.5),
        stops=some(6),
        stumbling=int(now_and_then(50, 200)),
        crashes=some(2),
        stalls=some(2, 0.2),
        restarts=some(2, 0.2),
        jumps=some(2, 0.15),
        calendar_jumps=some(3),
        evictions=some(8),
        cancelling=cancelling,
    )


def let_loose(world: World) -> None:
    """Enter all faults that have a time of their own."""
    weather, chance, engine = world.weather, world.chance, world.engine

    def enter(count: int, fault: object, *draws: object) -> None:
        assert callable(fault)
        for _ in range(count):
            args = [draw() if callable(draw) else draw for draw in draws]
            world.timeline.at(chance.uniform(0.0, weather.clears_at), fault, *args)

    def length() -> float:
        return weather.stop_length(chance)

    for _ in range(weather.stops):
        enter(1, chance.choice(world.processes).stop, length)
    for _ in range(weather.crashes):
        enter(1, chance.choice(world.processes).crash)
    enter(weather.stalls, engine.stall, length)
    enter(weather.restarts, _restart, world)
    enter(weather.jumps, engine.jump, lambda: chance.choice((-1.0, 1.0)) * length())
    enter(weather.calendar_jumps, engine.jump_calendar, lambda: chance.uniform(-3600.0, 3600.0))
    enter(weather.evictions, _evict, world)
    if weather.stumbling:
        for process in world.processes:
            process.steps_to_stumble = weather.steps_between_stumbles(chance)


def _restart(world: World) -> None:
    chance = world.chance
    forgets = chance.random() < 0.7
    world.engine.restart(min(1.0, 0.2 * chance.random() ** 2), forgets, forgets and chance.random() < 0.5)


def _evict(world: World) -> None:
    """An operator breaks a lock by hand."""
    engine = world.engine
    holders = [
        (name, place.token)
        for name, line in engine.store.lines.items()
        for place in line.places
        if place.holds(engine.now)
    ]
    if holders:
        name, token = world.chance.choice(holders)
        world.fault("holder evicted")
        engine.carry_out(Evict(name, token), Moment(engine.now, engine.calendar))
