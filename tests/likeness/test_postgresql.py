"""The model of PostgreSQL answers as PostgreSQL does, call by call (`postgresql_play.py` says what is levelled)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from random import Random
from unittest.mock import patch

import pytest
from psycopg.pq import DiagnosticField, PGconn, PollingStatus

import holdfast
from holdfast.backends.postgresql.programs import SQL
from holdfast.backends.postgresql.session.codec import SessionCodec
from holdfast.model import Claim, LockSpec
from holdfast_sim.servers.postgresql import errors, programs
from holdfast_sim.servers.postgresql.handle import SimulatedConnection
from holdfast_sim.servers.postgresql.pooler import Pooler
from holdfast_sim.servers.postgresql.server import PostgreSQLServer
from holdfast_sim.servers.relational.lock_table import LockTable
from tests.likeness.play import RealTime, rounds, serving
from tests.likeness.postgresql_play import Difference, Direct
from tests.likeness.postgresql_rounds import Play, play_rounds
from tests.likeness.virtual import VirtualTime
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
    play.model.kill_connection(pair.number)
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


def test_behind_a_pooler_the_table_works_and_sessions_are_refused() -> None:
    host = RealTime(Random(1))
    model = PostgreSQLServer(host, "served")
    with serving(Pooler(model), host) as port:
        url = f"postgresql://postgres@127.0.0.1:{port}/served"
        with holdfast.connect(url) as one, holdfast.connect(url) as other:
            first = one.lock("job").acquire()
            release = threading.Timer(0.3, first.release)
            release.start()
            second = other.lock("job", timeout=20).acquire()
            assert second.token > first.token
            second.release()
            release.join()
        with pytest.raises(holdfast.Misconfigured, match="pooler"):
            holdfast.connect(url.replace("postgresql:", "postgresql+session:"))


def test_behind_a_pooler_what_was_prepared_is_unknown_and_nothing_is_heard() -> None:
    host = VirtualTime(1000.0, Random(3))
    model = PostgreSQLServer(host, "served")
    handle = SimulatedConnection(Direct(Pooler(model), host.chance), "postgres", "served")
    while handle.connect_poll() != PollingStatus.OK:
        pass
    states = set()
    for number in range(20):
        name = b"s%d" % number
        handle.send_prepare(name, SQL["session_alive"].text)
        states.add(state_of(handle))
        handle.send_query_prepared(name, ())
        states.add(state_of(handle))
    assert states == {None, b"26000"}
    handle.send_query(b'LISTEN "box"')
    assert state_of(handle) is None
    model.notify(1, "box", "hello")
    handle.consume_input()
    assert handle.notifies() is None


def state_of(handle: SimulatedConnection) -> bytes | None:
    """The SQLSTATE of what was answered."""
    handle.flush()
    last = None
    while True:
        while handle.is_busy():
            handle.consume_input()
        if (result := handle.get_result()) is None:
            assert last is not None
            return last.error_field(DiagnosticField.SQLSTATE)
        last = result
