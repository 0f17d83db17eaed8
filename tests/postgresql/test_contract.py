"""The lock table keeps the whole contract: directly, and through a pooler in transaction mode."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.testing import BODIES, Body, Promise, Venue, contract_promises, play
from tests.postgresql.pooler import pooling
from tests.postgresql.server import Server


@pytest.fixture(scope="module")
def venues(server: Server) -> Iterator[dict[str, Venue]]:
    """One database for both: every promise is played in a namespace of its own."""
    database = f"contract{os.getpid()}"
    server.execute(f"CREATE DATABASE {database}")
    with pooling(server) as pooler:
        yield {"direct": Venue(server.url(database)), "pooled": Venue(pooler.url(database))}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", ["direct", "pooled"])
@pytest.mark.parametrize("promise", contract_promises(), ids=lambda promise: promise.name)
def test_the_contract(venues: dict[str, Venue], promise: Promise, way: str, body: Body) -> None:
    play(promise, venues[way], body)
