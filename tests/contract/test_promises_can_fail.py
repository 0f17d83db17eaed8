"""A promise counts once it was seen to fail: each planted bug is noticed by the promises that are there for it.

And the other way round: there is no promise that has never been seen to fail.
"""

from __future__ import annotations

import pytest

from holdfast.errors import HoldfastError
from holdfast.testing import contract_promises, play
from tests.contract.plants import around, asking, engine, holding, inputs, verbs  # noqa: F401  each plants its bugs
from tests.contract.plants.plant import PLANTS, Plant

PROMISES = {promise.name: promise for promise in contract_promises()}
CELLS = [pytest.param(plant, name, id=f"{plant.bug}-{name}") for plant in PLANTS for name in plant.notices]


@pytest.mark.parametrize(("plant", "name"), CELLS)
def test_a_planted_bug_is_noticed(plant: Plant, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    promise = PROMISES[name]
    plant.patch(monkeypatch)
    monkeypatch.setattr("holdfast.testing.stage.HANG", 5.0)
    monkeypatch.setattr("holdfast.testing.contract.LONGEST", 3.0 if promise.real_time else 0.6)
    with pytest.raises((Exception, BaseExceptionGroup)) as caught:
        play(promise, plant.venue(), "asyncio")
    for error in leaves(caught.value):
        assert isinstance(error, AssertionError | HoldfastError | TimeoutError | ValueError) or plant.slips, (
            f"the plant does not fit the code any more: {error!r}"
        )


def leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in leaves(one)]
    return [error]


def test_every_promise_has_been_seen_to_fail() -> None:
    assert sorted({name for plant in PLANTS for name in plant.notices} ^ set(PROMISES)) == []
