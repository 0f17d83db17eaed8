"""The model of PostgreSQL answers as PostgreSQL does, call by call (`postgresql_play.py` says what is levelled)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from random import Random
from unittest.mock import patch

import pytest
from psycopg.pq import PGconn, PollingStatus

import holdfast
from holdfast.backends.postgresql.session.codec import SessionCodec
from holdfast.model import Claim, LockSpec
from holdfast_sim.servers.postgresql import errors, programs
from holdfast_sim.servers.postgresql.handle import SimulatedConnection
from holdfast_sim.servers.postgresql.server import PostgreSQLServer
from holdfast_sim.servers.relational.lock_table import LockTable
from tests.likeness.play import RealTime, rounds, serving
from tests.likeness.postgresql_play import Difference, Direct
from tests.likeness.postgresql_rounds import Play, play_rounds
from tests.postgresql.server import Server, running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def test_random_statements_are_answered_alike(server: Server) -> None:
    play_rounds(server, range(rounds(4)))


PLANTED: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "a release promotes nobody": lambda: patch.object(LockTable, "release", lambda *_: (True, [])),
    "another error for who is canceled": lambda: patch.object(errors, "canceled", lambda why: errors.terminated()),
    "nobody is told": lambda: patch.object(PostgreSQLServer, "notify", lambda *_: None),
    "a token is one too high": lambda: patch.object(programs, "mint", lambda *_: 7),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_difference_is_found(server: Server, planted: str) -> None:
    with PLANTED[planted](), pytest.raises(Difference):
        play_rounds(server, range(40))


def test_a_statement_that_takes_too_long_is_canceled(server: Server) -> None:
    play = Play(server, "likeness")
    pair, other = play.opened(), play.opened()
    pair.say(b"SET statement_timeout = 100")
    claim, locks = Claim(LockSpec("a"), "o", "actor"), SessionCodec("ns", "host", 1)
    play.ask(other, locks.take(claim, False, False))
    order = locks.wait(claim)
    pair.start(order.statement, list(order.values), play.now)
    play.host.advance(0.1)
    assert pair.settle()
    for one in (pair, other):
        one.close()


def test_a_session_is_ended_by_an_administrator_or_for_being_idle(server: Server) -> None:
    play = Play(server, "likeness")
    pair, other = play.opened(), play.opened()
    server.execute("SELECT pg_terminate_backend(%s)", pair.number)
    play.model.terminate(pair.number)
    pair.ended()
    other.say(b"SET idle_session_timeout = 100")
    play.host.advance(0.1)
    other.ended()


def test_who_is_not_let_in_is_told_alike(server: Server) -> None:
    play = Play(server, "likeness")
    url = server.url("nowhere")
    assert refusal_of_server(url) in refusal_of_model(play, "postgres", "", "nowhere")
    play.model.users["bob"] = "secret"
    assert "password authentication failed for user" in refusal_of_model(play, "bob", "wrong", "likeness")


def refusal_of_server(url: str) -> str:
    """The words after FATAL."""
    handle = PGconn.connect(url.encode())
    words = handle.get_error_message().partition("FATAL:")[2].strip()
    handle.finish()
    assert words
    return words


def refusal_of_model(play: Play, user: str, password: str, database: str) -> str:
    handle = SimulatedConnection(Direct(play.model, play.dice), user, database, password)
    while (status := handle.connect_poll()) != PollingStatus.FAILED:
        assert status != PollingStatus.OK
    return handle.get_error_message()


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+session"])
def test_todays_client_works_with_the_model_through_libpq(scheme: str) -> None:
    host = RealTime(Random(1))
    model = PostgreSQLServer(host, "served")
    with serving(model, host) as port:
        url = f"{scheme}://postgres@127.0.0.1:{port}/served"
        with holdfast.connect(url) as one, holdfast.connect(url) as other:
            first = one.lock("job").acquire()
            with pytest.raises(holdfast.NotAcquired):
                other.lock("job", timeout=0).acquire()
            release = threading.Timer(0.3, first.release)
            release.start()
            second = other.lock("job", timeout=20).acquire()
            assert second.token > first.token
            second.release()
            release.join()
