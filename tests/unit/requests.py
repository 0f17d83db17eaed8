"""Random requests for engines that keep lines: what a handful of clients might send, in a sensible order and in others.

A claim is an owner with one ask, as in life: a retry sends the same. Tokens are filled in by whoever sends a request
(of an eviction, -1 is the last one that was granted, -2 the one before). Times are multiples of 1/64 s, which are exact
as floats and as whole microseconds, so that two engines can be given the very same moments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from holdfast.backends.queue_backend import Allow, Evict, Recover, Release, Renew, Survey, Take
from holdfast.model import Claim, LockSpec, LockView

NAMES = ("a", "b", "a/b")
ITS_OWN = "?"
"""The name of an eviction that is to hit: filled in with the token."""

OLDEST, LATEST = -2, -1
"""Which of its owner's tokens a renewal names."""

TICK = 15_625
"""1/64 s in microseconds."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, and how much time passes before it. `door` says through which of several clients it comes."""

    request: Any
    ticks: int
    door: int
    days: int
    """By so many days the calendar is set forward before it, or back."""


class Crowd:
    """A few clients. `mixed`: not only mutexes, but semaphores, readers and writers on the same names.

    `robust`: some of them leave a name unrecovered if they do not end cleanly, and some put it right.
    """

    def __init__(self, seed: int, mixed: bool, robust: bool = False) -> None:
        self._random = Random(seed)
        self._mixed = mixed
        self._robust = robust
        self._claims = [self._claim(number) for number in range(self._random.randint(3, 6))]

    def _claim(self, number: int) -> Claim:
        some = self._random
        kinds = [(1, 1)] * 3 + [(3, 1), (3, 2), (3, 3)] if self._mixed and some.random() < 0.7 else [(1, 1)]
        capacity, weight = some.choice(kinds)
        spec = LockSpec(
            some.choice([NAMES[0]] * 5 + list(NAMES)),
            ttl=some.choice([0.5, 2.0, 16.0, 16.0]),
            weight=weight,
            capacity=capacity,
            fair=some.random() < 0.8,
            lock_delay=some.choice([0.0, 0.0, 1.0]),
            robust=self._robust and some.random() < 0.5,
        )
        return Claim(spec, f"o{number}", f"actor{number % 3}")

    def step(self, picture: Sequence[LockView]) -> Step:
        """What somebody might do next, given who holds and who waits."""
        some = self._random
        ticks = 0 if some.random() < 0.7 else some.choice([1, 16, 32, 64, 130, 700, 2000])
        return Step(
            self._request(picture), ticks, some.randrange(2), some.choice([-1, 2]) if some.random() < 0.03 else 0
        )

    def _request(self, picture: Sequence[LockView]) -> Any:
        some = self._random
        holding = {claim.owner for view in picture for claim in view.holders}
        anybody = some.choice(self._claims)
        holder = some.choice([claim for claim in self._claims if claim.owner in holding] or [anybody])
        if self._robust and some.random() < 0.1:
            return Recover(replace(holder, token=some.choice([OLDEST, LATEST, LATEST])))
        kind = some.random()
        if kind < 0.38:
            return Take((anybody,), some.random() < 0.9)
        if kind < 0.46:
            return Take(self._several(), some.random() < 0.6)
        if kind < 0.66:
            return Release(holder if some.random() < 0.7 else anybody, 0.0)
        if kind < 0.70:
            return Release(holder, 0.75)
        if kind < 0.80:
            claims = [holder] if some.random() < 0.5 else some.sample(self._claims, 2)
            return Renew([replace(claim, token=some.choice([OLDEST, LATEST, LATEST])) for claim in claims])
        if kind < 0.90:
            return Evict(ITS_OWN if some.random() < 0.9 else some.choice(NAMES), -some.randint(1, 3))
        if kind < 0.95:
            return Survey(some.choice(["", "a", "b"]), some.random() < 0.3, some.random() < 0.3)
        interval, burst, reserve = some.choice([0.5, 1.0]), some.randint(1, 3), some.choice([0.0, 2.0])
        return Allow(some.choice(NAMES), interval, burst, 1, reserve)

    def _several(self) -> list[Claim]:
        by_name = {claim.spec.name: claim for claim in self._random.sample(self._claims, len(self._claims))}
        return list(by_name.values())


def shrunk(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """As few of the steps as still fail: what is left is the story."""
    number = len(steps)
    while number:
        number -= 1
        without = steps[:number] + steps[number + 1 :]
        if fails(without):
            steps = without
            number = min(number, len(steps))
    return steps
