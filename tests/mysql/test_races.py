"""Several sessions at once (`tests/relational/races.py`), at the isolation levels that the procedures stand on."""

from __future__ import annotations

import pytest

from tests.mysql.house import MariaDB
from tests.mysql.server import Server
from tests.relational.races import crossed_names, renewals_and_expiries

LEVELS = {level: f"SET SESSION TRANSACTION ISOLATION LEVEL {level}" for level in ("READ COMMITTED", "REPEATABLE READ")}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("capacity", "weight"), [(1, 1), (3, 2)])
def test_a_renewal_never_brings_back_what_was_given_away(
    server: Server, url: str, level: str, capacity: int, weight: int
) -> None:
    renewals_and_expiries(MariaDB(server), url, capacity, weight, LEVELS[level].encode())


def deadlocks(server: Server) -> int:
    return int(server.execute("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")[0][1])


@pytest.mark.parametrize("level", LEVELS)
def test_crossed_names_never_wait_for_each_other(server: Server, url: str, level: str) -> None:
    """Under READ COMMITTED MariaDB finds no deadlock to break.

    REPEATABLE READ locks the gaps between names, too, and who makes a name may then be a victim: it is asked for again,
    and nobody sees it.
    """
    before = deadlocks(server)
    crossed_names(MariaDB(server), url, LEVELS[level].encode())
    if level == "READ COMMITTED":
        assert deadlocks(server) == before
