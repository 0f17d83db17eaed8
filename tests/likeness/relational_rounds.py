"""What the random rounds of both relational engines are made of: claims, and requests about them."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

from holdfast.backends.queue_backend import Allow, Evict, Recover, Release, Renew, Survey, Take, Taken
from holdfast.backends.relational.batch import LeaveAll, LookAll
from holdfast.model import Claim, LockSpec

Request: TypeAlias = Take | Release | Renew | Survey | Evict | Recover | Allow | LookAll | LeaveAll | None
START_US = 2_000_000_000_000_000
STEPS = 60
SESSIONS = 3
STEPS_US = (*[0] * 8, *[1000] * 4, 250_000, 250_000, 1_000_000, 1_000_000, 11_000_000, 90_000_000_000)


def new_claims(dice: Random) -> list[Claim]:
    return [_claim(dice, number) for number in range(dice.randint(3, 7))]


def _claim(dice: Random, number: int) -> Claim:
    name = dice.choice(["a", "a", "b", "ü c"])
    capacity = {"a": 1, "b": 3, "ü c": 2}[name] + (dice.random() < 0.1)  # somebody may have it wrong
    spec = LockSpec(
        name,
        ttl=dice.choice([0.5, 2.0, 16.0]),
        weight=dice.randint(1, capacity),
        capacity=capacity,
        fair=dice.random() < 0.7,
        lock_delay=dice.choice([0.0, 0.0, 1.0]),
        robust=dice.random() < 0.3,
    )
    return Claim(spec, f"o{number}", f"actor{number % 3}")


def table_request(dice: Random, claims: list[Claim]) -> Request:
    """Any verb of the lock table; None stands for housekeeping."""
    claim = dice.choice(claims)
    several = list({one.spec.name: one for one in dice.sample(claims, 3)}.values())
    requests: list[Request] = [Take((claim,), True)] * 5
    requests += [Take((claim,), False), Take(several, True), Take(several, False), Release(claim, 0.75)]
    requests += [Release(claim, 0.0)] * 4
    requests += [Renew([claim]), Renew(dice.sample(claims, 2)), Survey(""), Survey("a"), None, None]
    requests += [LookAll(dice.sample(claims, 3)), LookAll([claim]), LeaveAll(dice.sample(claims, 2))]
    requests += [Evict(claim.spec.name, claim.token or 7), Recover(claim)]
    requests += [Allow(claim.spec.name, 0.5, 2, 1, dice.choice([0.0, 2.0]))]
    return dice.choice(requests)


def note_tokens(request: object, reply: object) -> None:
    """Claims remember their grants, so that later requests name them."""
    if isinstance(request, Take) and isinstance(reply, list):
        for one, taken in zip(request.claims, reply, strict=True):
            assert isinstance(taken, Taken)
            one.token = taken.token or one.token
