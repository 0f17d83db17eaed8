"""What crashed holders and names that were used once leave behind is dropped, by whoever is there; nothing else is."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

import holdfast
from holdfast.backends.relational import session_client, table_client
from tests.postgresql.server import Server

DAY = 24 * 3600 * 1_000_000


def count(server: Server, database: str, table: str) -> int:
    [[rows]] = server.execute(f"SELECT count(*) FROM {table}", database=database)
    return int(rows)


def a_day_passes(server: Server, database: str) -> None:
    """Marks are older by that; what a mark is compared with is the clock."""
    for table in ("holdfast_claim", "holdfast_session"):
        server.execute(f"UPDATE {table} SET mark = mark - {DAY}", database=database)


def test_what_is_over_is_dropped_and_what_is_held_stays(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_client, "requests_until_tidy", lambda chance: 1)
    with holdfast.connect(server.url(database)) as locks:
        for number in range(20):
            locks.lock(f"once/{number}").acquire().release()
            assert locks.limiter(f"api/{number}", "1000/s").try_acquire()
        a_day_passes(server, database)
        server.execute(
            "INSERT INTO holdfast_claim (name, place, owner, token, mark, expires, ttl) "
            "SELECT 'holdfast/dead/' || n, 0, 'gone', 5, 5, 1000, 1000 FROM generate_series(1, 20) n",
            database=database,
        )
        held = locks.lock("door").acquire()
        a_day_passes(server, database)
        for _ in range(5):
            held.renew()
        assert server.execute("SELECT name FROM holdfast_claim", database=database) == [("holdfast/door",)]
        assert count(server, database, "holdfast_rate") == 0
        held.release()


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+session"])
def test_names_that_are_used_once_do_not_pile_up(server: Server, database: str, scheme: str) -> None:
    """Five days of 1,500 names each: what is left is not much more than one day's."""
    table = {"postgresql": "holdfast_claim", "postgresql+session": "holdfast_session"}[scheme]
    with holdfast.connect(server.url(database).replace("postgresql:", f"{scheme}:")) as locks:
        for day in range(5):
            for number in range(1500):
                locks.lock(f"once/{day}/{number}").acquire().release()
            a_day_passes(server, database)
    assert count(server, database, table) < 2 * 1500


def test_processes_that_live_for_one_lock_tidy_as_well(server: Server, database: str) -> None:
    """By chance, because none of them lives long enough to count: here are those that have the luck of one in 64."""
    with holdfast.connect(server.url(database)) as locks:
        locks.lock("first").acquire().release()
    server.execute(
        "INSERT INTO holdfast_claim (name, place, mark) "
        "SELECT 'holdfast/once/' || n, 0, 5 FROM generate_series(1, 300) n",
        database=database,
    )
    program = (
        "import random, sys, holdfast\n"
        "locks = holdfast.connect(sys.argv[1])\n"
        "random.seed(int(sys.argv[2]))\n"
        "locks.lock('door').acquire().release()\n"
    )
    lucky = next(seed for seed in range(10_000) if random.Random(seed).random() < 1 / 200)
    subprocess.run([sys.executable, "-c", program, server.url(database), str(lucky)], check=True)
    assert count(server, database, "holdfast_claim") < 300


def test_a_session_lock_that_is_held_for_days_is_still_shown(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_client, "requests_until_tidy", lambda chance: 1)
    url = server.url(database).replace("postgresql:", "postgresql+session:")
    with holdfast.connect(url) as locks, locks.lock("door"):
        locks.lock("over").acquire().release()
        a_day_passes(server, database)
        a_day_passes(server, database)
        for number in range(5):
            locks.lock(f"other/{number}").acquire().release()
        assert [len(view.holders) for view in locks.survey("door")] == [1]
        assert not server.execute("SELECT name FROM holdfast_session WHERE name LIKE '%over'", database=database)
