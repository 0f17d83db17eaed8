"""Several sessions at once (`tests/relational/races.py`), at the one isolation level that the functions stand on."""

from __future__ import annotations

import pytest

from tests.postgresql.house import PostgreSQL
from tests.postgresql.server import Server
from tests.relational.races import crossed_names, renewals_and_expiries


@pytest.mark.parametrize(("capacity", "weight"), [(1, 1), (3, 2)])
def test_a_renewal_never_brings_back_what_was_given_away(server: Server, url: str, capacity: int, weight: int) -> None:
    renewals_and_expiries(PostgreSQL(server), url, capacity, weight)


def test_crossed_names_never_wait_for_each_other(server: Server, url: str) -> None:
    """PostgreSQL finds no deadlock to break: it would be an error."""
    crossed_names(PostgreSQL(server), url)
