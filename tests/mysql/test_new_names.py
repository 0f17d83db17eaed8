"""A name that was never used before: as many statements as any other, and nothing is lost where the short cut fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast
from tests.mysql.server import Server, connect, serving
from tests.relational.house import of_sessions

BOTH = pytest.mark.parametrize("scheme", ["mysql", "mysql+session"])


def scheme_url(url: str, scheme: str) -> str:
    return of_sessions(url) if scheme.endswith("+session") else url


@pytest.fixture(scope="module")
def quiet() -> Iterator[Server]:
    """Nobody else has its statements counted."""
    with serving() as server:
        server.execute("CREATE DATABASE quiet")
        yield server


@BOTH
@pytest.mark.parametrize("known", [False, True])
def test_a_take_and_a_release_are_a_statement_each(quiet: Server, scheme: str, known: bool) -> None:
    with holdfast.connect(scheme_url(quiet.url("quiet"), scheme)) as locks, connect(quiet.port) as counter:
        locks.lock("first").acquire().release()

        def counted() -> int:
            with counter.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
                return int(cursor.fetchone()[1])

        before = counted()
        for number in range(20):
            locks.lock("first" if known else f"orders/{number}").acquire().release()
        assert 2 * 20 < counted() - before < 2.5 * 20  # with this question, and housekeeping


def test_so_are_those_of_clients_that_take_a_name_in_turn(quiet: Server) -> None:
    """Each is told who was there before it, without a statement for that."""
    url = quiet.url("quiet")
    with holdfast.connect(url) as one, holdfast.connect(url) as two, connect(quiet.port) as counter:
        for locks in (one, two, one, two):
            locks.lock("shared").acquire().release()

        def counted() -> int:
            with counter.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
                return int(cursor.fetchone()[1])

        before = counted()
        for _ in range(10):
            for locks in (one, two):
                locks.lock("shared").acquire().release()
        assert 2 * 20 < counted() - before < 2.5 * 20


@BOTH
def test_what_another_client_has_used_is_taken_and_refused_as_any_name(url: str, scheme: str) -> None:
    where = scheme_url(url, scheme)
    with holdfast.connect(where) as one, holdfast.connect(where) as two:
        two.lock("other").acquire().release()
        with one.lock("door") as held:
            assert two.lock("door").try_acquire() is None
        again = two.lock("door").acquire()
        assert again.token > held.token
        assert one.lock("door").try_acquire() is None
        assert again.release()
        assert one.lock("door").acquire().release()


@pytest.mark.parametrize("name", ["short", "long" * 40, "ü" * 60, "x" * 86, "x" * 87])
def test_holders_and_waiters_of_short_and_long_names_are_seen(url: str, name: str) -> None:
    with holdfast.connect(of_sessions(url)) as locks, holdfast.connect(of_sessions(url)) as others:
        for client in (locks, others):
            client.lock("other").acquire().release()
        for client in (locks, others):
            with client.lock(name) as lease:
                views = [*locks.survey(), *others.survey(name, exact=True)]
                assert len(views) == 2
                for view in views:
                    assert (view.name, [holder.token for holder in view.holders]) == (name, [lease.token])
                assert others.survey("another") == []


def test_a_mark_just_below_the_ceiling_leaves_no_lock_behind(url: str, server: Server, database: str) -> None:
    """The lock is got then, and its token may not be given yet."""
    with holdfast.connect(of_sessions(url)) as locks, holdfast.connect(of_sessions(url)) as others:
        for client in (locks, others):
            client.lock("other").acquire().release()
        locks.lock("door").acquire().release()
        server.execute("UPDATE holdfast_session_floor SET ceiling = ceiling + 1000000000", database)
        server.execute(
            "UPDATE holdfast_session SET mark = (SELECT ceiling - 1 FROM holdfast_session_floor) WHERE owner <> ''",
            database,
        )
        [(ceiling,)] = server.execute("SELECT ceiling FROM holdfast_session_floor", database)
        lease = others.lock("door").acquire()
        assert lease.token >= ceiling
        [(raised,)] = server.execute("SELECT ceiling FROM holdfast_session_ceiling", database)
        assert lease.token < raised
        assert lease.release()
        assert locks.lock("door").acquire(timeout=0).release()
