"""Deadlock detection by reduction of the resource-allocation graph.

The survey is a snapshot of all lines. Every actor that waits for nothing is assumed to release what it holds, sooner
or later; that grants the locks to others, which then wait for less; and so on. An actor that can never be granted its
locks that way is in a deadlock. The lines are reduced by the same rule that grants them, so semaphores,
readers and writers, and the order of the line are judged exactly; no time-out is guessed.

A lease that was taken with `acquire` may be handed to another thread, which then releases it; one that was taken with
`with` may not. LOOSE marks the first kind: it does not count as held by an actor that waits for the same name, and
not at all where handing over is usual (permits, readers).

Of a cycle, only the youngest waiter gives way: the one that closed it, when it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import BackendUnavailable, DeadlockDetected
from ..model import Claim, ClaimView, LockView
from ..ports import AnyBackend, Surveys
from .flow import NOW, Flow
from .timing import bounded

LOOSE = "~"
"""Prefix of an actor whose lease may be handed to another thread."""


@dataclass(slots=True)
class _Queue:
    capacity: int
    holders: list[ClaimView]
    waiters: list[ClaimView]


def waits_as(claim: ClaimView) -> str:
    """The actor that is blocked while this claim waits."""
    return claim.actor.removeprefix(LOOSE)


def held_by(claim: ClaimView, line: _Queue | LockView) -> str | None:
    """The actor that must run on before this hold can end; None if any thread may end it."""
    if not claim.actor.startswith(LOOSE):
        return claim.actor
    actor = waits_as(claim)
    if claim.mode in ("permit", "read") or any(waits_as(waiter) == actor for waiter in line.waiters):
        return None
    return actor


def stuck(views: Iterable[LockView]) -> set[str]:
    """The actors that can never be granted what they wait for."""
    lines = [_Queue(view.capacity, list(view.holders), list(view.waiters)) for view in views]
    moving = True
    while moving:
        moving = False
        waiting = {waits_as(claim) for line in lines for claim in line.waiters}
        for line in lines:
            staying = [claim for claim in line.holders if held_by(claim, line) in waiting]
            moving = moving or len(staying) < len(line.holders)
            line.holders = staying
            used = sum(claim.weight for claim in staying)
            while line.waiters and used + line.waiters[0].weight <= line.capacity:
                used += line.waiters[0].weight
                line.holders.append(line.waiters.pop(0))
                moving = True
    return {waits_as(claim) for line in lines for claim in line.waiters}


def circle(views: Sequence[LockView]) -> set[str]:
    """The actors of cycles: of the stuck ones those for which a stuck one waits, repeated until no more drop out."""
    actors = stuck(views)
    while True:
        awaited: set[str] = set()
        for view in views:
            before = {actor for claim in view.holders if (actor := held_by(claim, view)) is not None}
            for claim in view.waiters:
                if waits_as(claim) in actors:
                    awaited |= before
                before.add(waits_as(claim))
        if actors <= awaited:
            return actors
        actors &= awaited


def describe(views: Sequence[LockView], actors: set[str]) -> list[str]:
    """The holds and waits of the actors of a cycle, as text."""
    words = []
    for actor in sorted(actors):
        held = [(v.name, c) for v in views for c in v.holders if held_by(c, v) == actor]
        wanted = [(v.name, c) for v in views for c in v.waiters if waits_as(c) == actor]
        if not (held and wanted):
            continue
        who = f"{wanted[0][1].host}:{wanted[0][1].pid} ({actor})"
        holds = ", ".join(f"{name!r} (token {claim.token})" for name, claim in held)
        words.append(f"{who} holds {holds} and waits for " + ", ".join(repr(name) for name, _ in wanted))
    return words


def youngest(views: Sequence[LockView], actors: set[str]) -> ClaimView | None:
    """The claim that began to wait last, of the actors of a cycle that hold something (only they check)."""
    holding = {held_by(claim, view) for view in views for claim in view.holders}
    waits = [claim for view in views for claim in view.waiters if waits_as(claim) in actors & holding]
    return max(waits, key=lambda claim: (claim.since, claim.owner), default=None)


def detect_deadlock(backend: AnyBackend, claim: Claim, deadline: float | None) -> Flow[None]:
    """Raise `DeadlockDetected` if this claim is the youngest of a cycle of waiters.

    The end of a timeout ends a deadlock, too: the look has the time until then, and no answer is no error.
    """
    if not isinstance(backend, Surveys):
        return
    within_s = None if deadline is None else deadline - (yield NOW)
    if within_s is not None and within_s <= 0:
        return
    try:
        views = yield from bounded(backend.survey("", contended=True), within_s)
    except BackendUnavailable:
        if deadline is None:
            raise
        return
    actors = circle(views)
    actor = claim.actor.removeprefix(LOOSE)
    victim = youngest(views, actors) if actor in actors else None
    if victim is not None and waits_as(victim) == actor:
        raise DeadlockDetected(claim.spec.name, describe(views, actors))
