"""A server and the reference (`_core.line`), driven with the same requests at the same moments.

Replies, tokens, pushes and the survey after each step must be equal. HOLDFAST_SEED starts elsewhere.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from holdfast._core.line import Place
from holdfast.backends.execute import Moment, push_to
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.queue_backend import Allow, Evict, Push, Recover, Release, Renew, Survey, Take, Taken
from holdfast.backends.relational.batch import LeaveAll, Left, LookAll, Looked
from holdfast.backends.relational.replies import Released
from holdfast.model import Claim, LockSpec, LockView
from holdfast_sim.servers.relational.batch import leave_all, look_all
from tests.unit.requests import NAMES, TICK, Step

TOLD_BY_THE_REPLY = (Release, LookAll, LeaveAll)
"""Requests whose replies tell those who wait in the coordinator that asks."""
STEPS = 50
STALE = -1
"""Stands for the token of a grant that is over."""

DAY = 24 * 3600 * 1_000_000
START = 1_700_000_000 * 64 * TICK
_examples = itertools.count(1)


class Server(Protocol):
    """An engine whose clock is set by whoever asks; host and process of all claims are `host` and 7."""

    def begin(self, namespace: str) -> None: ...

    def ask(self, request: Any, now: int) -> tuple[Any, list[tuple[str, Push]]]:
        """The reply, and the pushes, each with its owner."""
        ...

    def tidy(self) -> None:
        """All the housekeeping there is to do."""
        ...


def reply_of(said: Released | Looked | Left) -> Any:
    """Without those whom it tells."""
    match said:
        case Released(held=held):
            return held
        case Looked(taken=taken):
            return list(taken)
        case Left(held=each):
            return list(each)


def exact(said: Any, expected: Any) -> Any:
    """What a waiter is told of those before it may count some who have left, and is never too few.

    It looks again no later than it must.
    """
    if not isinstance(said, list) or not all(taken is None or isinstance(taken, Taken) for taken in said):
        return said
    return [
        taken
        and real
        and replace(taken, ahead=min(taken.ahead, real.ahead), look_again=max(taken.look_again, real.look_again))
        for taken, real in zip(said, expected, strict=True)
    ]


def pushes_to(promoted: Sequence[Place]) -> list[tuple[str, Push]]:
    return [(place.owner, push_to(place)) for place in promoted if place.wake]


def seen(views: Sequence[LockView]) -> list[LockView]:
    """Where nobody stands, the capacity says nothing: whoever comes next brings another."""
    return [view if view.holders or view.waiters else replace(view, capacity=0) for view in views]


class Both:
    """The server and the reference, side by side."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def begin(self) -> None:
        """A new example, in a namespace of its own."""
        self.now = START
        self._server.begin(f"ns{next(_examples)}")
        self._reference = MemoryStore()
        self._tokens: list[int] = []
        self._granted: dict[str, int] = {}

    def _ask_reference(self, request: Any) -> Any:
        if isinstance(request, LookAll | LeaveAll):
            claims = [(claim.spec.name, claim.owner) for claim in request.claims]
            said: Any
            if isinstance(request, LookAll):
                said, granted = look_all(self._reference, claims, "wake", self.now)
            else:
                said, granted = leave_all(self._reference, claims, self.now)
            return said, pushes_to(granted)
        reply, promoted = self._reference.carry_out(request, Moment(self.now, self.now, "wake", "host", 7))
        return reply, pushes_to([place for _, place in promoted])

    def _made_out(self, request: Any) -> Any:
        """An eviction names one of the last tokens; a renewal the last grant of its claim, or a stale one."""
        match request:
            case Evict(token=back):
                return replace(request, token=self._tokens[back] if len(self._tokens) >= -back else 7)
            case Renew(claims=claims):
                granted = (7 if claim.token == STALE else self._granted.get(claim.owner, 7) for claim in claims)
                return Renew([replace(claim, token=token) for claim, token in zip(claims, granted, strict=True)])
            case Recover(claim=claim):
                token = 7 if claim.token == STALE else self._granted.get(claim.owner, 7)
                return Recover(replace(claim, token=token))
        return request

    def compare(self, step: Step) -> None:
        self.now += step.ticks * TICK + DAY * min(step.days, 0)
        request = self._made_out(step.request)
        said, pushed = self._server.ask(request, self.now)
        expected, promoted = self._ask_reference(request)
        if isinstance(request, Survey):
            said, expected = seen(said), seen(expected)
        assert exact(said, expected) == expected, request
        assert sorted(pushed, key=repr) == sorted(promoted, key=repr), request
        granted = [(owner, push.token) for owner, push in pushed]
        if isinstance(request, Take):
            taken = zip(request.claims, said, strict=True)
            granted += [(claim.owner, one.token) for claim, one in taken if one.token]
        self._granted.update(granted)
        self._tokens += [token for _, token in granted]
        views, _ = self._server.ask(Survey(""), self.now)
        assert seen(views) == seen(self._ask_reference(Survey(""))[0]), f"the survey after {request}"

    def tidy(self) -> None:
        """Housekeeping changes nothing that anybody sees."""
        self._server.tidy()


def script(seed: int, mixed: bool) -> Iterator[Step]:
    """What a handful of owners might send, in any order; long, so that lines form and move."""
    dice = random.Random(seed)
    usual = {name: dice.choice([1, 3, 3]) if mixed else 1 for name in NAMES}
    claims = []
    for number in range(dice.randint(3, 7)):
        name = dice.choice(NAMES[: dice.choice([1, 1, 3])])
        capacity = 4 if mixed and dice.random() < 0.1 else usual[name]  # somebody may have it wrong
        weight = dice.randint(1, capacity)
        spec = LockSpec(
            name,
            ttl=dice.choice([0.5, 2.0, 16.0]),
            weight=weight,
            capacity=capacity,
            fair=dice.random() < 0.7,
            lock_delay=dice.choice([0.0, 0.0, 1.0]),
            robust=dice.random() < 0.4,
        )
        claims.append(Claim(spec, f"o{number}", f"actor{number % 3}"))
    for _ in range(STEPS):
        several = list({claim.spec.name: claim for claim in dice.sample(claims, 3)}.values())
        claim = dice.choice(claims)
        request = dice.choice(
            [Take((claim,), True)] * 6
            + [Take((claim,), False)] * 2
            + [Take(several, dice.random() < 0.5)] * 3
            + [Release(claim, 0.0)] * 5
            + [Release(claim, 0.75), Renew(dice.sample(claims, 2)), Renew([claim]), Survey(dice.choice(["", "a", "b"]))]
            + [Renew([replace(claim, token=STALE)])]
            + [Evict(claim.spec.name, dice.randint(-3, -1))] * 2
            + [Recover(claim), Recover(claim), Recover(replace(claim, token=STALE))]
            + [LookAll(dice.sample(claims, dice.randint(1, len(claims))))] * 3
            + [LeaveAll(dice.sample(claims, dice.randint(1, len(claims))))] * 2
            + [Allow(claim.spec.name, 0.5, 2, 1, dice.choice([0.0, 2.0]))]
        )
        yield Step(request, dice.choice([0, 0, 0, 1, 16, 32, 64, 200, 700]), 0, dice.random() < 0.02)


def same_answers(server: Server, seeds: int, mixed: bool) -> None:
    both = Both(server)
    first = int(os.environ.get("HOLDFAST_SEED", "0"))
    for seed in range(first, first + seeds):
        both.begin()
        for step in script(seed, mixed):
            try:
                both.compare(step)
            except AssertionError as error:
                error.add_note(f"seed {seed}, {'every kind' if mixed else 'mutexes'}; HOLDFAST_SEED={seed} replays it")
                raise


def tidied_all_the_time(server: Server) -> None:
    """Between the requests of a script without expiries, everything that can be tidied is: nobody sees a difference."""
    both = Both(server)
    for seed in range(10):
        both.begin()
        for step in script(seed, mixed=True):
            both.compare(replace(step, ticks=0, days=0))
            both.tidy()
