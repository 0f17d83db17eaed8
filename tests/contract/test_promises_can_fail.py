"""A promise counts once it was seen to fail: each planted bug is noticed by the promises that are there for it.

And the other way round: there is no promise that has never been seen to fail.
"""

from __future__ import annotations

import pytest

from holdfast.backends import SCHEMES
from holdfast.errors import HoldfastError
from holdfast.testing import contract_promises, run_promise
from holdfast.testing.contract import leaves
from tests.contract.plants import (  # noqa: F401  each plants bugs
    actors,
    around,
    asking,
    counts,
    declared,
    engine,
    holding,
    inputs,
    network,
    once,
    over_tcp,
    partitions,
    recovery,
    verbs,
)
from tests.contract.plants.plant import PLANTS, Plant

PROMISES = {promise.name: promise for promise in contract_promises()}
CELLS = [pytest.param(plant, name, id=f"{plant.bug}-{name}") for plant in PLANTS for name in plant.notices]
LONGEST = {(False, False): 0.6, (True, False): 3.0, (True, True): 60.0}
"""By whether time is real, and a network takes part: those are about waiting, and must not fail by it alone."""


OVER_TCP = [name for name, promise in PROMISES.items() if promise.network]


@pytest.mark.parametrize("name", OVER_TCP)
def test_the_reference_keeps_them_over_a_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, "plant", over_tcp.__name__)
    with over_tcp.serving() as under_test:
        run_promise(PROMISES[name], under_test, "asyncio")


@pytest.mark.parametrize(("plant", "name"), CELLS)
def test_a_planted_bug_is_noticed(plant: Plant, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    promise = PROMISES[name]
    plant.patch(monkeypatch)
    monkeypatch.setitem(SCHEMES, "plant", over_tcp.__name__)
    monkeypatch.setattr("holdfast.testing.context.HANG_S", 5.0)
    monkeypatch.setattr("holdfast.testing.contract.HANG_S", LONGEST[promise.real_time, promise.network])
    with plant.under_test() as under_test, pytest.raises((Exception, BaseExceptionGroup)) as caught:
        run_promise(promise, under_test, "asyncio")
    for error in leaves(caught.value):
        assert isinstance(error, AssertionError | HoldfastError | TimeoutError | ValueError) or plant.slips, (
            f"the plant does not fit the code any more: {error!r}"
        )


def test_every_promise_has_been_seen_to_fail() -> None:
    assert sorted({name for plant in PLANTS for name in plant.notices} ^ set(PROMISES)) == []
