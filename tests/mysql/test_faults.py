"""What is MariaDB's own: ears that are roused, statements that are killed, a primary that becomes a replica."""

from __future__ import annotations

import threading

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.mysql.engine import open_engine
from holdfast.backends.queue_backend import Release, Take
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim, LockSpec
from tests.mysql.server import Server, connect


def test_a_push_from_another_user_comes_too(server: Server, database: str) -> None:
    """It may not rouse the ears (KILL QUERY), which then look by themselves: no look of the waiter is waited for."""
    with holdfast.connect(server.url(database)) as locks:
        server.execute("CREATE USER other@'127.0.0.1'")
        server.execute(f"GRANT ALL ON {database}.* TO other@'127.0.0.1'")
        with holdfast.connect(server.url(database).replace("root@", "other@")) as others:
            lease = others.lock("door").acquire()
            taken = threading.Event()

            def wait() -> None:
                with locks.lock("door", timeout=120):
                    taken.set()

            waiter = threading.Thread(target=wait)
            waiter.start()
            while not others.survey("door")[0].waiters:
                pass
            lease.release()
            waiter.join(120)
            assert taken.is_set()
    server.execute("DROP USER other@'127.0.0.1'")


def test_ears_are_roused(server: Server, url: str) -> None:
    """The waiter's connection waits at the server; whoever lets go ends that wait, and does not wait for its end."""

    def kills() -> int:
        return int(server.execute("SHOW GLOBAL STATUS LIKE 'Com_kill'")[0][1])

    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        lease = locks.lock("door").acquire()
        waiter = threading.Thread(target=lambda: others.lock("door", timeout=120).acquire().release())
        waiter.start()
        listening = "SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'"
        while not server.execute(listening):
            pass
        before = kills()
        lease.release()
        waiter.join(120)
        assert kills() == before + 1


def test_a_primary_that_becomes_a_replica_is_left(server: Server, database: str) -> None:
    with holdfast.connect(server.url(database)):
        pass  # it makes the tables
    server.execute("CREATE USER writer@'127.0.0.1'")
    server.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON {database}.* TO writer@'127.0.0.1'")
    wire = open_engine(server.url(database).replace("root@", "writer@"), "holdfast", 5.0).wire()
    claim = Claim(LockSpec("door"), "o1", "actor")
    wire.call(Take((claim,), True), 5.0)
    server.execute("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(BackendUnavailable, match="read-only"):
            wire.call(Release(claim, 0.0), 5.0)
        with pytest.raises(BackendUnavailable, match="is not what it was"):
            wire.call(Release(claim, 0.0), 5.0)  # it has dialled, and finds no primary
    finally:
        server.execute("SET GLOBAL read_only = 0")
    assert wire.call(Release(claim, 0.0), 5.0)
    wire.close()
    server.execute("DROP USER writer@'127.0.0.1'")


def test_a_killed_statement_leaves_no_half(server: Server, url: str) -> None:
    """A procedure that is killed between a grant and its mark is rolled back, and done again."""
    database = url.rpartition("/")[2]
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        lease = locks.lock("door").acquire()
        tokens = []

        def wait() -> None:
            with others.lock("door", timeout=120) as mine:
                tokens.append(mine.token)
                tokens.append(server.execute("SELECT mark FROM holdfast_claim WHERE place = 0", database)[0][0])

        waiter = threading.Thread(target=wait)
        waiter.start()
        waiting = "SELECT wake, owner FROM holdfast_claim WHERE wake <> 0 AND token = 0"
        while not (found := server.execute(waiting, database)):
            pass
        [(wake, owner)] = found
        with connect(server.port, database=database) as blocker, blocker.cursor() as cursor:
            blocker.begin()
            cursor.execute("INSERT INTO holdfast_push (wake, owner, token, since) VALUES (%s, %s, 0, 0)", (wake, owner))
            releaser = threading.Thread(target=lease.release)
            releaser.start()
            busy = "SELECT id FROM information_schema.processlist WHERE info LIKE 'INSERT INTO holdfast_push%'"
            while not (stuck := server.execute(busy)):
                pass
            server.execute(f"KILL QUERY {stuck[0][0]}")
            while server.execute(f"{busy} AND id = {stuck[0][0]}"):
                pass
            blocker.rollback()
        releaser.join(120)
        waiter.join(120)
        token, mark = tokens
        assert token == mark
        assert token > lease.token


def test_ended_rows_do_not_pile_up(server: Server, database: str) -> None:
    """What crashed holders and one-off names leave behind is swept away a day later, by whoever is there."""
    with holdfast.connect(server.url(database)) as locks:
        for number in range(20):
            locks.lock(f"once/{number}").acquire().release()
        day = 2 * 24 * 3600 * 1_000_000
        server.execute(f"UPDATE holdfast_claim SET mark = mark - {day}", database)
        for number in range(20):
            server.execute(
                "INSERT INTO holdfast_claim (name, place, owner, token, mark, expires, ttl) "
                f"VALUES ('holdfast/dead/{number}', 0, 'gone', 5, 5, 1000, 1000)",
                database,
            )
        server.execute("INSERT INTO holdfast_push (wake, owner, token, since) VALUES (1, 'gone', 1, 1)", database)
        held = locks.lock("door").acquire()
        for _ in range(2000):  # a few of them tidy up, by chance
            held.renew()
        assert server.execute("SELECT name FROM holdfast_claim", database) == [(b"holdfast/door",)]
        assert server.execute("SELECT * FROM holdfast_push", database) == []
        held.release()
