"""One seed to the byte: faults, calm, everybody once more, close."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from unittest.mock import patch

from holdfast.backends.redis import connection, notifications
from holdfast.backends.redis.resp import Pushed, RespReader

from ..seed import Outcome
from ..violation import Violation
from ..workload_recipes import draw_kinds
from ..world import Teller
from .engines import ENGINES
from .profile import draw_byte_profile, with_busy_close, with_shared_faults
from .schedule import schedule_byte_faults
from .world import ByteWorld

SETTLE_LIMIT_S = 60.0
"""How long after the last fault everything must have ended."""
STEP_S = 0.25
RECONNECT_S = 1.0
"""From a lost connection until there is another one, when no fault is left."""
REST_S = 2.0
"""Whatever may still come of the past comes within this time, if it comes before the limit at all."""
IDLE_S = 0.03
"""Between the end of idle connections and the next request: too soon for anything but a look."""


def run_bytes(engine: str, seed: int, tell: Teller | None = None) -> Outcome:
    """Run a seed."""
    chance = Random(seed)
    profile = draw_byte_profile(chance)
    if ENGINES[engine].shares_faults:
        profile = with_shared_faults(profile, Random(~seed))
    profile = with_busy_close(profile, Random(~seed * 7919))  # a prime: apart from the other draws of any seed
    kinds = draw_kinds(chance)
    outcome = Outcome(seed)
    with _same_machine():
        world = ByteWorld(engine, chance, profile, chance.randint(2, 3), tell)
        if world.engine.only_mutexes:
            kinds = dict.fromkeys(kinds, "mutex")
        world.trace("profile", "{}", profile)
        world.trace("names", "{}", kinds)
        for process in world.processes:
            process.begin(chance.randint(1, 2), kinds)
        schedule_byte_faults(world)
        try:
            _live(world, kinds)
        except Violation as violation:
            outcome.invariant, outcome.story = violation.invariant, violation.story
            world.trace("VIOLATION", "{}", violation)
    outcome.events = world.timeline.events
    outcome.operations = world.operations
    outcome.seconds = world.timeline.now
    outcome.counts, outcome.faults = world.counts, world.faults
    return outcome


@contextmanager
def _same_machine() -> Iterator[None]:
    """What engines write of their process would else differ from run to run, and the bytes with it.

    hiredis's reader is left out: it cannot be copied, as a fork does.
    """
    with ExitStack() as stack:
        for thing, name, value in (
            (os, "getpid", lambda: 4711),
            (socket, "gethostname", lambda: "sim"),
            (connection, "make_reader", RespReader),
            (connection, "PUSHED", Pushed),
            (notifications, "make_reader", RespReader),
        ):
            stack.enter_context(patch.object(thing, name, value))
        yield


def _live(world: ByteWorld, kinds: dict[str, str]) -> None:
    timeline, profile = world.timeline, world.profile
    _run_scripts(world, profile.faults_end_at + SETTLE_LIMIT_S, "nobody waits for ever")
    timeline.run(max(timeline.now, profile.faults_end_at, *(each.stopped_until for each in world.processes)))
    _run_scripts(world, profile.faults_end_at + SETTLE_LIMIT_S, "nobody waits for ever")  # of a child that was forked
    world.trace("world", "is calm")
    running = [process for process in world.processes if not process.crashed and not process.closing]
    bound = world.invariants.longest + world.engine.remains_s + 2 * profile.request_timeout
    if not running:  # what the others have left is for whoever comes next
        running = [world.newcomer(kinds)]
        _run_scripts(world, timeline.now + bound, "everybody gets in again")
    for process in running:
        process.get_in_again(kinds)
    _run_scripts(world, timeline.now + bound, "everybody gets in again")
    _come_to_rest(world, timeline.now + world.invariants.longest + world.engine.remains_s)
    for listener in world.engine.listeners:
        listener.end_connections()  # they were idle for long
    _let_pass(world, IDLE_S)
    for process in running:
        process.try_after_idling(f"own{process.number}")
    _run_scripts(world, timeline.now + 5.0, "everybody gets in again")
    _let_pass(world, RECONNECT_S)
    closed = running if world.chance.random() < 0.5 else running[1:]  # beside those that have closed before
    for process in closed:
        process.close()
    _run_scripts(world, timeline.now + 5.0, "closing is bounded")
    _let_pass(world, world.engine.after_close_s)
    world.invariants.after_close()


def _come_to_rest(world: ByteWorld, limit: float) -> None:
    """Let time pass until nothing is left behind; that nothing is left at the limit is the rule."""
    if any(process.crashed for process in world.processes):
        _let_pass(world, limit - world.timeline.now)  # what it had ends by itself
    _let_pass(world, REST_S)
    while True:
        try:
            world.invariants.at_rest()
            if world.engine.is_settled() or world.timeline.now >= limit:
                return
            _let_pass(world, REST_S)
        except Violation:
            if world.timeline.now >= limit:
                raise
            _let_pass(world, REST_S)


def _let_pass(world: ByteWorld, seconds: float) -> None:
    """All of it, also if nothing happens at its end."""
    end = world.timeline.now + seconds
    world.timeline.run(end)
    world.timeline.now = end


def _run_scripts(world: ByteWorld, limit: float, invariant: str) -> None:
    timeline = world.timeline
    until = timeline.now
    while any(process.scripts for process in world.processes):
        if until >= limit:
            stuck = [
                f"{process.name} ({', '.join(task.label for task in process.tasks if task.label.startswith('script'))})"
                for process in world.processes
                if process.scripts
            ]
            story = f"{', '.join(stuck)} did not come to an end"
            if invariant == "nobody waits for ever":
                raise Violation("nobody waits for ever", story)
            if invariant == "closing is bounded":
                raise Violation("closing is bounded", story)
            raise Violation("everybody gets in again", story)
        until += STEP_S
        timeline.run(until)
