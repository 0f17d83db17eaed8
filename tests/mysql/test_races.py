"""Verbs that run at the same moment in several sessions: holds that end just when they are renewed, names crossed.

A property test with one session cannot see what an isolation level lets through; here the sessions race, with holds
of a few milliseconds, and every survey (one snapshot) must show what the rules allow.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from holdfast.backends.line import Release, Renew, Survey, Take
from holdfast.backends.mysql.codec import PREPARED, Codec
from holdfast.backends.mysql.wires.dialling import Dialling
from holdfast.backends.mysql.wires.link import Link
from holdfast.model import Ask, Claim
from tests.mysql.server import Server

SECONDS = 2.0
LEVELS = ["READ COMMITTED", "REPEATABLE READ"]


def race(url: str, isolation: str, work: Callable[[Link, random.Random, int], None], sessions: int = 4) -> None:
    """Several sessions at once; the first error of any is raised."""
    errors: list[BaseException] = []
    dialling = Dialling(url, 5.0, PREPARED)
    dialling.dial().close()  # the tables are there

    def run(number: int) -> None:
        link = dialling.dial()
        link.say(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}".encode(), 5.0)
        try:
            end = time.monotonic() + SECONDS
            dice = random.Random(number)
            while time.monotonic() < end and not errors:
                work(link, dice, number)
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)
        finally:
            link.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize(("capacity", "weight"), [(1, 1), (3, 2)])
def test_a_renewal_never_brings_back_what_was_given_away(url: str, isolation: str, capacity: int, weight: int) -> None:
    codec = Codec("t", "host", 1)
    ask = Ask("door", ttl=0.002, capacity=capacity, weight=weight)
    tokens: list[int] = []

    def work(link: Link, dice: random.Random, number: int) -> None:
        claim = Claim(ask, f"o{number}-{dice.random()}", "actor")
        [taken] = link.ask(codec.write(Take((claim,), dice.random() < 0.7)), 5.0)
        held = Claim(ask, claim.owner, "actor", taken.token)
        for _ in range(dice.randint(1, 4)):
            if taken.token:
                link.ask(codec.write(Renew([held])), 5.0)
            for view in link.ask(codec.write(Survey("")), 5.0):
                live = [claim for claim in view.holders if claim.live]
                assert sum(claim.weight for claim in live) <= capacity, live
        if taken.token:
            tokens.append(taken.token)
        if dice.random() < 0.7:
            link.ask(codec.write(Release(held, 0.0)), 5.0)

    race(url, isolation, work)
    assert len(set(tokens)) == len(tokens) > 50


def deadlocks(server: Server) -> int:
    return int(server.execute("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")[0][1])


@pytest.mark.parametrize("isolation", LEVELS)
def test_crossed_names_never_wait_for_each_other(url: str, server: Server, isolation: str) -> None:
    """Takes of many and batches of renewals, in any order of names.

    Under READ COMMITTED MariaDB finds no deadlock to break. REPEATABLE READ locks the gaps between names, too, and who
    makes a name may then be a victim: it is asked for again, and nobody sees it.
    """
    codec = Codec("t", "host", 1)
    before = deadlocks(server)

    def work(link: Link, dice: random.Random, number: int) -> None:
        names = dice.sample([f"n{one}-{dice.randint(0, 3)}" for one in range(6)], 4)
        claims = [Claim(Ask(name, ttl=0.05), f"o{number}-{dice.random()}", "actor") for name in names]
        taken = link.ask(codec.write(Take(claims, dice.random() < 0.5)), 5.0)
        held = [Claim(c.ask, c.owner, c.actor, one.token) for c, one in zip(claims, taken, strict=True)]
        link.ask(codec.write(Renew(dice.sample(held, 4))), 5.0)
        for claim in held:
            link.ask(codec.write(Release(claim, 0.0)), 5.0)
        link.ask(codec.tidy(b"", 50), 5.0)

    race(url, isolation, work)
    if isolation == "READ COMMITTED":
        assert deadlocks(server) == before
