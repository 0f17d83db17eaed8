"""What an engine promises, and how quick it is: asked and measured at the engine itself.

1. Measured is the pair: take a free lock and release it, `PAIR_COUNT` times or for `MEASURE_S`, whichever ends first,
   on a name of its own that nobody else uses.
2. Nothing is measured that is not used: the p99 bounds the ttl from below.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...clock import now
from ...model import Promises
from .tree import EngineFacts, Leaf

if TYPE_CHECKING:
    from ... import Coordinator

PAIR_COUNT = 200
MEASURE_S = 2.0
WARM_UP_COUNT = 5


@dataclass(frozen=True, slots=True)
class Lack:
    """A promise that is not kept: `needed` if the advice does not work without it, else it is weaker."""

    promise: str
    needed: bool
    why: str


@dataclass(frozen=True, slots=True)
class EngineReport:
    """An engine that was asked."""

    url: str
    promises: Promises
    pair_count: int
    p50: float
    p99: float


def look_at(locks: Coordinator) -> EngineReport:
    """Ask an engine for its promises, and measure it."""
    name = f"advise/{secrets.token_hex(8)}"
    lock = locks.lock(name, ttl=30, timeout=30)
    taken: list[float] = []
    end = now() + MEASURE_S
    for turn in range(WARM_UP_COUNT + PAIR_COUNT):
        began = now()
        if began > end and taken:
            break
        with lock:
            pass
        if turn >= WARM_UP_COUNT:
            taken.append(now() - began)
    return EngineReport(locks.url, locks.promises, len(taken), quantile(taken, 0.5), quantile(taken, 0.99))


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest of the values that is not below this part of them.

    >>> quantile([3.0, 1.0, 2.0, 4.0], 0.5), quantile([3.0, 1.0, 2.0, 4.0], 0.99)
    (2.0, 4.0)
    """
    ordered = sorted(values)
    return ordered[max(0, -int(-part * len(ordered) // 1) - 1)]


def lacks_of(leaf: Leaf, promises: Promises) -> list[Lack]:
    """What a leaf needs or wants, and an engine that was asked does not promise."""
    return [
        Lack(promise, promise in leaf.needs, promises.notes.get(promise, "the engine does not have it"))
        for promise in (*leaf.needs, *leaf.wants)
        if promise not in promises
    ]


def known_lacks(leaf: Leaf, facts: EngineFacts) -> list[Lack]:
    """The same for an engine that was only named."""
    known = {**facts.weak, **facts.cannot}
    return [
        Lack(promise, promise in leaf.needs, known[promise])
        for promise in (*leaf.needs, *leaf.wants)
        if promise in known
    ]
