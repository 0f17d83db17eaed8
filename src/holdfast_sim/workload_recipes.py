"""What the workload acquires: all recipes, with random options.

A name has one kind for a whole seed; everything else is drawn anew each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from holdfast._core.flow import Flow
from holdfast._core.lease import Hold
from holdfast.model import LockSpec
from holdfast.recipes import specs as recipes
from holdfast.recipes.election import candidacy
from holdfast.recipes.limiter import Rate, pass_in_turn, pass_now
from holdfast.recipes.multi import obtain_all
from holdfast.recipes.options import Options
from holdfast.recipes.reentrant import reenter

if TYPE_CHECKING:
    from .workload import SimWorker

KINDS = ("mutex", "mutex", "mutex", "shared", "counted")
PERMIT_COUNT = 3
RATE = Rate("rate", 0.2, 3)
"""The one limiter, which all clients share."""


def draw_kinds(chance: Random) -> dict[str, str]:
    """The names of a seed, each with its kind."""
    return {f"n{number}": chance.choice(KINDS) for number in range(chance.choice((1, 1, 2, 3)))}


def obtain(worker: SimWorker, name: str, timeout: float | None) -> Flow[list[Hold]]:
    """Acquire a name, in one of the ways that its kind allows."""
    chance, core, kinds, actor = worker.chance, worker.process.core, worker.kinds, worker.actor
    options = _options(chance, worker.world.ttls)
    if "linger" in core.backend.promises.lacks:
        options.pop("lock_delay", None)
        options.pop("hold_at_least", None)
    spec: LockSpec
    if kinds[name] == "shared":
        spec = (recipes.reader if chance.random() < 0.6 else recipes.writer)(name, options)
    elif kinds[name] == "counted":
        spec = recipes.permit(name, options, PERMIT_COUNT, chance.choice((1, 1, 2)))
    else:
        how = chance.random()
        mutexes = sorted(name for name, kind in kinds.items() if kind == "mutex")
        if how < 0.25 and len(mutexes) > 1:
            names = sorted(chance.sample(mutexes, chance.randint(2, len(mutexes))))
            return (yield from obtain_all(core, [recipes.mutex(name, options) for name in names], timeout, actor))
        if how < 0.4:
            return [(yield from reenter(core, recipes.mutex(name, options), timeout, actor))]
        spec = candidacy(name, options) if how < 0.55 else recipes.mutex(name, options)
    return [(yield from core.obtain(spec, timeout, actor))]


def pass_limiter(worker: SimWorker) -> Flow[None]:
    """Pass the limiter, or be refused; raises what `pass_in_turn` does."""
    chance, backend = worker.chance, worker.process.core.backend
    cost = chance.choice((1, 1, 2))
    if chance.random() < 0.5:
        if not (yield from pass_now(backend, RATE, cost)):
            return
    else:
        yield from pass_in_turn(backend, RATE, cost, chance.choice((None, 0.0, 0.3)))
    worker.world.invariants.limiter.passed(worker.task)


def _options(chance: Random, ttls: Sequence[float]) -> Options:
    options: Options = {"ttl": chance.choice(ttls)}
    if chance.random() < 0.2:
        options["renew"] = False
    if chance.random() < 0.15:
        options["fair"] = False
    if chance.random() < 0.1:
        options["max_hold"] = chance.choice((0.05, 0.3, 1.0))
    if chance.random() < 0.15:
        options["lock_delay"] = chance.choice((0.05, 0.5))
    if chance.random() < 0.1:
        options["hold_at_least"] = chance.choice((0.1, 0.7))
    if chance.random() < 0.2:
        options["margin"] = options["ttl"] * chance.choice((0.0, 0.1, 0.4))
    return options
