"""What is found out at the beginning: roles, settings, URLs; and what is swept away. Deaths: `test_deaths.py`."""

from __future__ import annotations

import re
import threading

import pytest

import holdfast
from holdfast.backends.postgresql.programs import schema
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.postgresql.server import Server


def test_a_role_that_may_not_create_is_told_what_to_do(server: Server, database: str) -> None:
    server.execute("CREATE ROLE clerk LOGIN", database=database)
    url = server.url(database).replace("postgres@", "clerk@")
    with pytest.raises(Misconfigured, match="holdfast schema postgresql"):
        holdfast.connect(url)
    with holdfast.connect(server.url(database)):
        pass  # somebody who may
    with pytest.raises(Misconfigured, match="grant"):
        holdfast.connect(url)
    [tables] = re.findall(
        r"UPDATE, DELETE ON ([\w, \n-]+); GRANT SELECT ON holdfast_meta", schema()
    )  # as its own head says
    tables = tables.replace("-- ", "")
    server.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO clerk; GRANT SELECT ON holdfast_meta TO clerk",
        database=database,
    )
    with holdfast.connect(url) as locks, locks.lock("door"):
        assert locks.limiter("api", "5/s").try_acquire()
    session_url = url.replace("postgresql://", "postgresql+session://")
    with holdfast.connect(session_url) as locks, locks.lock("door") as lease:
        assert locks.survey("door")[0].holders[0].token == lease.token
    server.execute("DROP OWNED BY clerk; DROP ROLE clerk", database=database)


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_another_default_isolation_changes_nothing(server: Server, database: str, isolation: str) -> None:
    server.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = '{isolation}'")
    inside = []
    with holdfast.connect(server.url(database)) as locks:

        def work() -> None:
            for _ in range(20):
                with locks.lock("door", timeout=120):
                    inside.append(1)
                    assert len(inside) == 1
                    inside.clear()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_a_read_only_role_is_refused(server: Server, database: str) -> None:
    server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(Misconfigured, match="read-only"):
        holdfast.connect(server.url(database))


def test_promises_follow_the_settings(server: Server, database: str) -> None:
    with holdfast.connect(server.url(database)) as locks:
        assert "fsync" in locks.promises.notes["durable"]
        assert {"fencing", "linearizable", "shared", "counting"} <= locks.promises.kept
    with pytest.raises(Misconfigured, match="durable"):
        holdfast.connect(server.url(database), require={"durable"})


def test_bad_urls_are_refused() -> None:
    with pytest.raises(Misconfigured, match="libpq"):
        holdfast.connect("postgresql://127.0.0.1/db?colour=red")
    with pytest.raises(BackendUnavailable, match="reached"):
        holdfast.connect("postgresql://127.0.0.1:1/db")


def test_the_password_is_not_shown(url: str) -> None:
    with holdfast.connect(url.replace("postgres@", "postgres:secret@")) as locks:
        assert "secret" not in locks.url
        assert "secret" not in repr(locks)


def test_ended_rows_do_not_pile_up(server: Server, database: str) -> None:
    """What crashed holders and one-off names leave behind is swept away a day later, by whoever is there."""
    with holdfast.connect(server.url(database)) as locks:
        for number in range(20):
            locks.lock(f"once/{number}").acquire().release()
        day = 2 * 24 * 3600 * 1_000_000
        server.execute(f"UPDATE holdfast_claim SET mark = mark - {day}", database=database)
        server.execute(
            "INSERT INTO holdfast_claim (name, place, owner, token, mark, expires, ttl) "
            "SELECT 'holdfast/dead/' || n, 0, 'gone', 5, 5, 1000, 1000 FROM generate_series(1, 20) n",
            database=database,
        )
        held = locks.lock("door").acquire()
        for _ in range(600):
            held.renew()
        assert server.execute("SELECT name FROM holdfast_claim", database=database) == [("holdfast/door",)]
        held.release()
