"""Verbs that run at the same moment in several sessions: holds that end just when they are renewed, names crossed.

A property test with one session cannot see what an isolation level lets through; here the sessions race, with holds
of a few milliseconds, and every survey (one snapshot) must show what the rules allow.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from holdfast.backends.queue_backend import Release, Renew, Survey, Take
from holdfast.model import Claim, LockSpec
from tests.relational.house import House

SECONDS, ROUNDS, SESSIONS = 2.0, 25, 4
"""A race is long enough once it has lasted so long, and each session has had so many rounds."""
BOUND = 30.0
"""Of one statement, seconds: a busy machine is slow, not wrong."""

Work = Callable[[Any, random.Random, int], None]


def race(house: House, url: str, words: bytes | None, work: Work) -> None:
    """Several sessions at once, each of which says these words first; the first error of any is raised."""
    errors: list[BaseException] = []
    dialling = house.dialling(url)
    dialling.dial().close()  # the tables are there

    def run(number: int) -> None:
        link = dialling.dial([words] if words else [])
        try:
            end = time.monotonic() + SECONDS
            dice = random.Random(number)
            rounds = 0
            while (time.monotonic() < end or rounds < ROUNDS) and not errors:
                work(link, dice, number)
                rounds += 1
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)
        finally:
            link.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def renewals_and_expiries(house: House, url: str, capacity: int, weight: int, words: bytes | None = None) -> None:
    """A renewal never brings back what was given away."""
    codec = house.codec("t")
    spec = LockSpec("door", ttl=0.002, capacity=capacity, weight=weight)
    tokens: list[int] = []

    def work(link: Any, dice: random.Random, number: int) -> None:
        claim = Claim(spec, f"o{number}-{dice.random()}", "actor")
        [taken] = link.ask(codec.write(Take((claim,), dice.random() < 0.7)), BOUND)
        held = Claim(spec, claim.owner, "actor", taken.token)
        for _ in range(dice.randint(1, 4)):
            if taken.token:
                link.ask(codec.write(Renew([held])), BOUND)
            for view in link.ask(codec.write(Survey("")), BOUND):
                live = [claim for claim in view.holders if claim.live]
                assert sum(claim.weight for claim in live) <= capacity, live
        if taken.token:
            tokens.append(taken.token)
        if dice.random() < 0.7:
            link.ask(codec.write(Release(held, 0.0)), BOUND)

    race(house, url, words, work)
    assert tokens
    assert len(set(tokens)) == len(tokens)


def crossed_names(house: House, url: str, words: bytes | None = None) -> None:
    """Takes of many and batches of renewals, in any order of names."""
    codec = house.codec("t")

    def work(link: Any, dice: random.Random, number: int) -> None:
        names = dice.sample([f"n{one}-{dice.randint(0, 3)}" for one in range(6)], 4)
        claims = [Claim(LockSpec(name, ttl=0.05), f"o{number}-{dice.random()}", "actor") for name in names]
        taken = link.ask(codec.write(Take(claims, dice.random() < 0.5)), BOUND)
        held = [Claim(c.spec, c.owner, c.actor, one.token) for c, one in zip(claims, taken, strict=True)]
        link.ask(codec.write(Renew(dice.sample(held, 4))), BOUND)
        for claim in held:
            link.ask(codec.write(Release(claim, 0.0)), BOUND)
        link.ask(codec.tidy(50), BOUND)

    race(house, url, words, work)
