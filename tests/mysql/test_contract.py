"""The lock table keeps the whole contract."""

from __future__ import annotations

import pytest

from holdfast.testing import BODIES, Body, Promise, Venue, contract_promises, play
from tests.mysql.conftest import new_database
from tests.mysql.server import Server


@pytest.fixture(scope="module")
def venue(server: Server) -> Venue:
    """One database: every promise is played in a namespace of its own."""
    return Venue(server.url(new_database(server)))


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_the_contract(venue: Venue, promise: Promise, body: Body) -> None:
    play(promise, venue, body)
