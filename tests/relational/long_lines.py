"""What verbs cost in a line of few and of many waiters: work is counted (rows, operations), not time.

An engine gives `ask`, which carries a request out, and `cost`, which tells what that took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.backends.queue_backend import Release, Renew, Take
from holdfast.backends.relational.batch import LeaveAll, LookAll
from holdfast.model import Claim, LockSpec

FEW_COUNT, MANY_COUNT, SOME_COUNT = 20, 2000, 10
SLACK_COUNT = 6
"""By as much may a verb cost more: a look at one row more, here and there."""

Ask = Callable[[Any], Any]
Cost = Callable[[Any], int]
Costs = Callable[[list[LockSpec], int, Ask, Cost], Iterator[tuple[str, int]]]

TTL_S, MARGIN_S = 600.0, 150.0
"""With this margin nobody's patience ends before the line is filled, however slow the machine is."""
MUTEX = [LockSpec("a", ttl=TTL_S, margin=MARGIN_S)]
SEMAPHORE = [LockSpec("a", ttl=TTL_S, margin=MARGIN_S, capacity=3)]
READERS_AND_WRITERS = [LockSpec("a", ttl=TTL_S, margin=MARGIN_S, capacity=64, weight=weight) for weight in (1, 64)]
kinds = pytest.mark.parametrize(
    "specs", [MUTEX, SEMAPHORE, READERS_AND_WRITERS], ids=["mutex", "semaphore", "readers and writers"]
)


def costs(specs: list[LockSpec], waiting: int, ask: Ask, cost: Cost) -> Iterator[tuple[str, int]]:
    """Fills a line, and carries out each verb in it; what it was, and what it took."""
    claims = [Claim(specs[number % len(specs)], f"o{number:08d}", "actor") for number in range(waiting + 10)]
    tokens = [ask(Take((claim,), True))[0].token for claim in claims]
    holders = sum(token > 0 for token in tokens)
    middle, last = claims[waiting // 2], claims[-1]
    newcomer = Claim(specs[-1], "newcomer", "actor")
    yield "a waiter in the middle looks", cost(Take((middle,), True))
    yield "the last one looks", cost(Take((last,), True))
    yield "somebody tries", cost(Take((newcomer,), False))
    yield "somebody joins", cost(Take((newcomer,), True))
    yield "one leaves from the middle", cost(Release(middle, 0.0))
    yield "the last one leaves", cost(Release(newcomer, 0.0))
    yield "a holder renews", cost(Renew([Claim(claims[0].spec, claims[0].owner, "actor", tokens[0])]))
    for number in range(holders - 1):
        ask(Release(claims[number], 0.0))
    yield "handed over", cost(Release(claims[holders - 1], 0.0))
    yield "somebody looks after that", cost(Take((last,), True))


def batch_costs(specs: list[LockSpec], waiting: int, ask: Ask, cost: Cost) -> Iterator[tuple[str, int]]:
    """The same for those who look, and who give up, together."""
    claims = [Claim(specs[-1], f"o{number:08d}", "actor") for number in range(waiting)]
    for claim in claims:
        ask(Take((claim,), True))
    yield "some look", cost(LookAll(claims[-SOME_COUNT:]))
    yield "some leave", cost(LeaveAll(claims[-SOME_COUNT:]))


def flat(
    specs: list[LockSpec], line: Callable[[], tuple[Ask, Cost]], slack: int = SLACK_COUNT, of: Costs = costs
) -> None:
    """`line` begins a new one."""
    few = dict(of(specs, FEW_COUNT, *line()))
    many = dict(of(specs, MANY_COUNT, *line()))
    grown = {verb: (few[verb], many[verb]) for verb in few if many[verb] > few[verb] + slack}
    assert not grown, f"costs with {FEW_COUNT} and {MANY_COUNT} who wait: {grown}"
