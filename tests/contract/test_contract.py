"""Every promise, on every engine, with threads and with tasks. The promises are in `holdfast.testing.promises`."""

from __future__ import annotations

import pytest

from holdfast.testing import BODIES, Body, EngineUnderTest, Promise, contract_promises, run_promise


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_promise(under_test: EngineUnderTest, promise: Promise, body: Body) -> None:
    run_promise(promise, under_test, body)
