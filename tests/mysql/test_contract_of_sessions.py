"""Session locks keep the contract as far as a session can: for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast
from holdfast import Coordinator
from holdfast.testing import BODIES, Body, Promise, Venue, contract_promises
from tests.mysql.house import MariaDB
from tests.mysql.server import Server
from tests.relational.house import of_sessions
from tests.relational.session_contract import play_for_sessions


@pytest.fixture(scope="module")
def venue(server: Server) -> Venue:
    return Venue(of_sessions(MariaDB(server).new_url()))


@pytest.fixture(scope="module")
def pair(venue: Venue) -> Iterator[tuple[Coordinator, Coordinator]]:
    with holdfast.connect(venue.url) as locks, holdfast.connect(venue.url) as other:
        yield locks, other


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_promise(promise: Promise, body: Body, venue: Venue, pair: tuple[Coordinator, Coordinator]) -> None:
    play_for_sessions(promise, venue, body, pair)
