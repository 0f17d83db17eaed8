"""A client that is flows keeps every promise, run by threads and by asyncio: what carries out its ops is shown here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.backends import SCHEMES
from holdfast.testing import BODIES, Body, Promise, Venue, contract_promises, play
from tests.support import flow_engine


@pytest.fixture(scope="module")
def venue() -> Iterator[Venue]:
    with flow_engine.serving_flows() as found:
        yield found


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_promise(promise: Promise, body: Body, venue: Venue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES, "flows", flow_engine.__name__)
    play(promise, venue, body)
