"""The functions at the server answer every sequence of requests as the reference does (`_core.line`).

Both are driven with the same requests at the same moments: the server's clock is one function, `holdfast_now`, and it
is replaced here. Replies, tokens, pushes and the survey after each step must be equal. HOLDFAST_SEED starts elsewhere.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.backends.line import Allow, Evict, Release, Renew, Survey, Take
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.postgresql.codec import Codec
from holdfast.backends.postgresql.wires.dialling import Dialling
from holdfast.backends.verbs import Moment
from holdfast.model import Ask, Claim
from tests.postgresql.server import Server
from tests.unit.requests import NAMES, TICK, Step

SEEDS, STEPS = 40, 50
STALE = -1
"""Stands for the token of a grant that is over."""

DAY = 24 * 3600 * 1_000_000
START = 1_700_000_000 * 64 * TICK
OUR_CLOCK = """CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS
               $$ SELECT current_setting('holdfast.now')::bigint $$"""


class Both:
    """The server and the reference, side by side."""

    def __init__(self, url: str) -> None:
        self._link = Dialling(url, 5.0).dial()
        self._link.say(OUR_CLOCK.encode(), 5.0)
        self._link.say(b"LISTEN box", 5.0)
        self._examples = itertools.count(1)

    def begin(self) -> None:
        """A new example, in a namespace of its own."""
        self.now = START
        self._namespace = f"ns{next(self._examples)}"
        self._codec = Codec(self._namespace, "host", 7)
        self._reference = MemoryStore()
        self._tokens: list[int] = []
        self._granted: dict[str, int] = {}

    def _ask_server(self, request: Any) -> Any:
        self._link.say(b"SET holdfast.now = %d" % self.now, 5.0)
        at_home = self.now % (2 * TICK) < TICK  # a release by those who wait themselves, or by others
        wake = b"box" if at_home or not isinstance(request, Release) else b"elsewhere"
        reply = self._link.ask(self._codec.write(request, wake), 5.0)
        self._link.say(b"SELECT 1", 5.0)  # notifications come before its answer
        pushes = [payload.decode().split() for _, payload in self._link.hear(0.0)]
        heard = [(owner, int(token)) for owner, token in pushes]
        if not isinstance(request, Release):
            return reply, heard
        assert not (heard if at_home else reply.pushes), "told twice, or the wrong way"
        return reply.held, [*heard, *reply.pushes]

    def _ask_reference(self, request: Any) -> Any:
        reply, promoted = self._reference.carry_out(request, Moment(self.now, self.now, "box", "host", 7))
        return reply, [(place.owner, place.token) for _, place in promoted if place.wake]

    def _made_out(self, request: Any) -> Any:
        """An eviction names one of the last tokens; a renewal the last grant of its claim, or a stale one."""
        match request:
            case Evict(token=back):
                return replace(request, token=self._tokens[back] if len(self._tokens) >= -back else 7)
            case Renew(claims=claims):
                granted = (7 if claim.token == STALE else self._granted.get(claim.owner, 7) for claim in claims)
                return Renew([replace(claim, token=token) for claim, token in zip(claims, granted, strict=True)])
        return request

    def compare(self, step: Step) -> None:
        self.now += step.ticks * TICK + DAY * min(step.days, 0)
        request = self._made_out(step.request)
        said, pushed = self._ask_server(request)
        expected, promoted = self._ask_reference(request)
        assert said == expected, request
        assert sorted(pushed) == sorted(promoted), request
        if isinstance(request, Take):
            granted = [(claim.owner, taken.token) for claim, taken in zip(request.claims, said, strict=True)]
            pushed += [(owner, token) for owner, token in granted if token]
        self._granted.update(pushed)
        self._tokens += [token for _, token in pushed]
        views, _ = self._ask_server(Survey(""))
        assert views == self._ask_reference(Survey(""))[0], f"the survey after {request}"

    def tidy(self) -> None:
        """Housekeeping changes nothing that anybody sees."""
        after = home = f"{self._namespace}/"
        while after.startswith(home):
            after = self._link.ask(self._codec.tidy(after, 2), 5.0)
        self._link.say(b"SELECT 1", 5.0)
        self._link.hear(0.0)

    def close(self) -> None:
        self._link.close()


@pytest.fixture(scope="module")
def both(server: Server) -> Iterator[Both]:
    server.execute("CREATE DATABASE reference")
    engines = Both(server.url("reference"))
    yield engines
    engines.close()


def script(seed: int, mixed: bool) -> Iterator[Step]:
    """What a handful of owners might send, in any order; long, so that lines form and move."""
    dice = random.Random(seed)
    usual = {name: dice.choice([1, 3, 3]) if mixed else 1 for name in NAMES}
    claims = []
    for number in range(dice.randint(3, 7)):
        name = dice.choice(NAMES[: dice.choice([1, 1, 3])])
        capacity = 4 if mixed and dice.random() < 0.1 else usual[name]  # somebody may have it wrong
        weight = dice.randint(1, capacity)
        ask = Ask(
            name,
            ttl=dice.choice([0.5, 2.0, 16.0]),
            weight=weight,
            capacity=capacity,
            fair=dice.random() < 0.7,
            lock_delay=dice.choice([0.0, 0.0, 1.0]),
        )
        claims.append(Claim(ask, f"o{number}", f"actor{number % 3}"))
    for _ in range(STEPS):
        several = list({claim.ask.name: claim for claim in dice.sample(claims, 3)}.values())
        claim = dice.choice(claims)
        request = dice.choice(
            [Take((claim,), True)] * 6
            + [Take((claim,), False)] * 2
            + [Take(several, dice.random() < 0.5)] * 3
            + [Release(claim, 0.0)] * 5
            + [Release(claim, 0.75), Renew(dice.sample(claims, 2)), Renew([claim]), Survey(dice.choice(["", "a", "b"]))]
            + [Renew([replace(claim, token=STALE)])]
            + [Evict(claim.ask.name, dice.randint(-3, -1))] * 2
            + [Allow(claim.ask.name, 0.5, 2, 1, dice.choice([0.0, 2.0]))]
        )
        yield Step(request, dice.choice([0, 0, 0, 1, 16, 32, 64, 200, 700]), 0, dice.random() < 0.02)


@pytest.mark.parametrize("mixed", [False, True], ids=["mutexes", "every kind"])
def test_same_answers_as_the_reference(both: Both, mixed: bool) -> None:
    first = int(os.environ.get("HOLDFAST_SEED", "0"))
    for seed in range(first, first + SEEDS):
        both.begin()
        for step in script(seed, mixed):
            try:
                both.compare(step)
            except AssertionError as error:
                error.add_note(f"seed {seed}, {'every kind' if mixed else 'mutexes'}; HOLDFAST_SEED={seed} replays it")
                raise


def test_housekeeping_takes_nothing_from_anybody(both: Both) -> None:
    """Between the requests of a script without expiries, everything that can be tidied is: nobody sees a difference."""
    for seed in range(10):
        both.begin()
        for step in script(seed, mixed=True):
            both.compare(replace(step, ticks=0, days=0))
            both.tidy()
