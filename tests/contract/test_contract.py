"""Every promise, on every engine, with threads and with tasks. The promises are in `holdfast.testing.promises`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.testing import BODIES, Body, Promise, Venue, contract_promises, play
from tests.contract.engines import ENGINES


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_promise(promise: Promise, engine: str, body: Body, venues: Callable[[str], Venue]) -> None:
    play(promise, venues(engine), body)
