"""Several sessions at once (`tests/relational/races.py`), at the isolation levels that the procedures stand on."""

from __future__ import annotations

import json
import threading
from contextlib import closing

import pytest

import holdfast
from tests.mysql.house import MariaDB
from tests.mysql.server import Server, connect
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


@pytest.mark.parametrize("level", LEVELS)
def test_a_renewal_of_several_sees_an_eviction_that_came_while_it_waited(
    server: Server, url: str, database: str, level: str
) -> None:
    """It has read the first name, and waits for the seat of the second, whose hold ends meanwhile."""
    said: list[str] = []
    with (
        holdfast.connect(url, ttl=600) as locks,
        closing(connect(server.port, database=database)) as evicting,
        closing(connect(server.port, database=database)) as renewing,
    ):
        leases = [locks.semaphore(name, permits=2).acquire() for name in ("a", "a", "b", "b")]
        behind_seats = "SELECT HEX(name), HEX(owner), token FROM holdfast_claim WHERE place > 0 ORDER BY name"
        claims = server.execute(behind_seats, database)
        evictor, renewer = evicting.cursor(), renewing.cursor()
        renewer.execute(LEVELS[level])
        evictor.execute(f"SELECT place FROM holdfast_claim WHERE name = x'{claims[1][0]}' AND place = 0 FOR UPDATE")

        def renew() -> None:
            renewer.execute("CALL holdfast_renew(%s)", (json.dumps(claims),))
            said.extend(str(renewer.fetchone()[0]).split(","))

        thread = threading.Thread(target=renew)
        thread.start()
        while not server.execute("SELECT 1 FROM information_schema.innodb_lock_waits"):
            assert thread.is_alive()
        evictor.execute(f"UPDATE holdfast_claim SET evicted = true WHERE name = x'{claims[1][0]}' AND place > 0")
        evicting.commit()
        thread.join()
        assert len(leases) == 4
    assert said == ["held", "evicted"]
