"""Nothing grows for ever: what is over is removed at least as fast as new names come, whoever they come from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast
from tests.mysql.server import Server, serving

A_DAY = 24 * 3600 * 1_000_000
DAYS, NAMES, PER_PROCESS = 6, 600, 30


def test_names_that_are_used_once_do_not_pile_up(server: Server, database: str) -> None:
    """Each day other names, from clients that live for a few of them: most of what is left is of the last days."""
    number = 0
    for _ in range(DAYS):
        for _ in range(NAMES // PER_PROCESS):
            with holdfast.connect(server.url(database)) as locks:
                for _ in range(PER_PROCESS):
                    number += 1
                    locks.lock(f"job/{number * 7919 % 1_000_000:06}").acquire().release()
        server.execute(f"UPDATE holdfast_claim SET mark = mark - {A_DAY + 1}", database)
    [[left]] = server.execute("SELECT COUNT(*) FROM holdfast_claim", database)
    assert left < NAMES * 3, f"{left} rows of {number} names in {DAYS} days"


@pytest.fixture(scope="module")
def narrow() -> Iterator[Server]:
    """Tables in memory have room for some 150 rows."""
    with serving({"max-heap-table-size": "65536"}) as server:
        server.execute("CREATE DATABASE small")
        yield server


def test_a_full_table_of_session_locks_makes_room(narrow: Server) -> None:
    """Every row is old and nobody holds its lock: the next name is let in, and tokens go on growing."""
    url = narrow.url("small").replace("mysql:", "mysql+session:")
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        held = locks.lock("held").acquire()
        first = others.lock("first").acquire()
        assert first.release()
        narrow.execute(
            f"UPDATE holdfast_session SET mark = mark + {A_DAY} WHERE owner <> ''", "small"
        )  # a clock set back
        [[mark]] = narrow.execute("SELECT MAX(mark) FROM holdfast_session", "small")
        for number in range(400):
            assert others.lock(f"once/{number}").acquire().release()
        for number in range(400):  # the lock that was got when the table was full was let go of
            assert locks.lock(f"once/{number}").acquire(timeout=0).release()
        again = others.lock("first").acquire()
        assert again.token > mark
        assert locks.lock("held").try_acquire() is None
        assert others.lock("held").try_acquire() is None
        assert again.release()
        assert held.release()


def test_session_locks_that_are_used_once_do_not_pile_up(server: Server, database: str) -> None:
    url = server.url(database).replace("mysql:", "mysql+session:")
    with holdfast.connect(url) as locks:
        for number in range(300):
            locks.lock(f"once/{number}").acquire().release()
        locks.lock("long" * 30).acquire().release()
    assert server.execute("SELECT COUNT(*) FROM holdfast_session_name", database) == [(1,)]
    server.execute(f"UPDATE holdfast_session SET mark = mark - {A_DAY + 1}", database)
    server.execute(f"UPDATE holdfast_session_name SET since = since - {A_DAY + 1}", database)
    for _ in range(200):  # each does it with a chance of one in sixteen
        server.execute("CALL holdfast_tidy(400)", database)
    assert server.execute("SELECT COUNT(*) FROM holdfast_session", database) == [(0,)]
    assert server.execute("SELECT COUNT(*) FROM holdfast_session_name", database) == [(0,)]
