"""Which faults a seed has, how often, and when.

Some seeds have no faults, so that strict bounds can be checked; the others mix a few kinds of fault. At
`faults_end_at` all faults end: from then on messages arrive, no process is paused or crashes, and everything that
is still under way must end.
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
class FaultProfile:
    """Chances are per message; counts are for the whole seed."""

    faults_end_at: float
    latency: float = 0.001
    request_timeout: float = 0.3
    tail: float = 0.0
    resource_tail: float = 0.0
    """The probability that a message to the engine (`tail`) or the resource (`resource_tail`) is very late."""
    loss: float = 0.0
    push_loss: float = 0.0
    duplication: float = 0.0
    duplicate_within_s: float = 4.0
    stops: int = 0
    mean_steps_between_pauses: int = 0
    """The mean number of clock readings between two pauses of a process; 0 means no such pauses."""
    crashes: int = 0
    stalls: int = 0
    restarts: int = 0
    jumps: int = 0
    calendar_jumps: int = 0
    evictions: int = 0
    long_hold_ratio: float = 0.0
    """The probability that a holder keeps its lease for several ttls."""
    cancel_ratio: float = 0.0
    """The probability that a round of the workload is cancelled."""

    def steps_between_pauses(self, chance: Random) -> int:
        return 1 + int(chance.expovariate(1.0 / self.mean_steps_between_pauses))

    def stop_length(self, chance: Random) -> float:
        return min(8.0, 0.05 / (1.0 - chance.random()))


def draw_profile(chance: Random) -> FaultProfile:
    """Draw the faults of a seed."""
    faults_end_at = chance.uniform(2.0, 8.0)
    cancel_ratio = chance.choice((0.0, 0.1, 0.4))
    if chance.random() < 0.15:
        return FaultProfile(faults_end_at, cancel_ratio=cancel_ratio)

    def now_and_then(*values: float) -> float:
        return chance.choice(values) if chance.random() < 0.4 else 0

    def some(most: int, how_often: float = 0.3) -> int:
        return chance.randint(1, most) if chance.random() < how_often else 0

    return FaultProfile(
        faults_end_at,
        latency=chance.choice((0.0005, 0.002, 0.01)),
        request_timeout=chance.choice((0.1, 0.3, 1.0)),
        tail=now_and_then(0.02, 0.1, 0.3),
        resource_tail=now_and_then(0.05, 0.2),
        loss=now_and_then(0.02, 0.1, 0.3),
        push_loss=now_and_then(0.1, 0.5, 1.0),
        duplication=now_and_then(0.05, 0.2, 0.5),
        stops=some(6),
        mean_steps_between_pauses=int(now_and_then(50, 200)),
        crashes=some(2),
        stalls=some(2, 0.2),
        restarts=some(2, 0.2),
        jumps=some(2, 0.15),
        calendar_jumps=some(3),
        evictions=some(8),
        cancel_ratio=cancel_ratio,
    )


def schedule_faults(world: World) -> None:
    """Enter the faults that happen at a given time into the timeline."""
    profile, chance, engine = world.profile, world.chance, world.engine

    def enter(count: int, fault: object, *draws: object) -> None:
        assert callable(fault)
        for _ in range(count):
            args = [draw() if callable(draw) else draw for draw in draws]
            world.timeline.at(chance.uniform(0.0, profile.faults_end_at), fault, *args)

    def length() -> float:
        return profile.stop_length(chance)

    for _ in range(profile.stops):
        enter(1, chance.choice(world.processes).stop, length)
    for _ in range(profile.crashes):
        enter(1, chance.choice(world.processes).crash)
    enter(profile.stalls, engine.stall, length)
    enter(profile.restarts, _restart, world)
    enter(profile.jumps, engine.jump, lambda: chance.choice((-1.0, 1.0)) * length())
    enter(profile.calendar_jumps, engine.jump_calendar, lambda: chance.uniform(-3600.0, 3600.0))
    enter(profile.evictions, _evict, world)
    if profile.mean_steps_between_pauses:
        for process in world.processes:
            process.steps_to_pause = profile.steps_between_pauses(chance)


def _restart(world: World) -> None:
    chance = world.chance
    forgets = chance.random() < 0.7
    world.engine.restart(min(1.0, 0.2 * chance.random() ** 2), forgets, forgets and chance.random() < 0.5)


def restart_and_remember(world: World, count: int) -> None:
    """Restarts of an engine that has its records on a disk."""
    chance = world.chance
    for _ in range(count):
        down_for = min(1.0, 0.2 * chance.random() ** 2)
        world.timeline.at(
            chance.uniform(0.0, world.profile.faults_end_at), world.engine.restart, down_for, False, False
        )


def _evict(world: World) -> None:
    """An operator evicts a holder."""
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
