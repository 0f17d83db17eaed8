"""When the faults of machines and processes happen; those of connections are drawn as they are made (`network`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast._core.flow import Flow
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from .process import ClientProcess
    from .world import ByteWorld


def schedule_byte_faults(world: ByteWorld) -> None:
    """Enter the faults into the timeline; at `faults_end_at` all that lasts is ended."""
    profile, chance, engine = world.profile, world.chance, world.engine

    def enter(count: int, fault: Callable[[], None]) -> None:
        for _ in range(count):
            world.timeline.at(chance.uniform(0.0, profile.faults_end_at), fault)

    def length() -> float:
        """Nothing outlasts the time of faults but a paused process."""
        return min(profile.stop_length(chance), left())

    def left() -> float:
        return max(0.01, profile.faults_end_at - world.timeline.now)

    def lasting() -> float:
        """Long enough to outlast a ttl."""
        return min(chance.uniform(*profile.lasting_s), left())

    def any_process() -> ClientProcess:
        return chance.choice(world.processes)

    enter(profile.stops, lambda: any_process().stop(profile.stop_length(chance)))
    enter(profile.crashes, lambda: any_process().crash())
    enter(profile.evictions, lambda: _evict(world))
    enter(profile.cuts, lambda: _cut(world, length()))
    enter(profile.ends, lambda: engine.end_connections(chance.choice(engine.listeners)))
    enter(profile.hangs, lambda: engine.hang(chance.choice(engine.listeners), length()))
    enter(
        profile.stops_of_servers,
        lambda: engine.stop(chance.choice(engine.listeners), length(), chance.random() < 0.5),
    )
    enter(profile.wipes, lambda: engine.wipe(min(0.5, length()), chance.random() < 0.5))
    enter(profile.wipes, engine.back_up)
    enter(profile.forks, lambda: any_process().fork())
    enter(profile.busy_closes, lambda: any_process().close_while_busy())
    enter(profile.full, lambda: engine.fill_up(lasting()))
    enter(profile.refused_writes, lambda: engine.refuse_writes(lasting()))
    enter(profile.password_changes, lambda: engine.change_password(lasting()))
    enter(profile.special, lambda: engine.special_fault(lasting()))
    enter(profile.calendar_jumps, lambda: engine.jump_calendar(chance.choice(engine.listeners)))
    world.timeline.at(profile.faults_end_at, engine.end_faults)
    if profile.mean_steps_between_pauses:
        for process in world.processes:
            process.steps_to_pause = profile.steps_between_pauses(chance)


def _cut(world: ByteWorld, seconds: float) -> None:
    process = world.chance.choice(world.processes)
    for listener in world.engine.listeners:
        if world.chance.random() < 0.7:
            world.network.cut(process, listener.host.name, seconds)


def _evict(world: ByteWorld) -> None:
    """An operator evicts a holder."""
    held = world.invariants.leases.held() if world.engine.evicts else []
    able = [process for process in world.processes if process.is_open and not process.crashed]
    if held and able:
        name, token = world.chance.choice(held)
        world.fault("holder evicted")
        world.trace("operator", "evicts {} of {!r}", token, name)
        world.invariants.leases.evicted(name, token)
        process = world.chance.choice(able)
        process.spawn(_evict_by(process, name, token), "operator")


def _evict_by(process: ClientProcess, name: str, token: int) -> Flow[None]:
    try:
        yield from process.core.backend.evict(name, token)  # type: ignore[attr-defined]
    except HoldfastError as error:
        process.world.trace("operator", "does not evict: {}", error)
