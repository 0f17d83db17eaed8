"""The model of MariaDB answers as MariaDB does, packet by packet (`mysql_play.py` says what is levelled)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from random import Random
from unittest.mock import patch

import pytest

import holdfast
from holdfast.backends.mysql import codec, short_cuts
from holdfast_sim.servers.mysql import errors, procedures
from holdfast_sim.servers.mysql.server import MariaDBServer
from holdfast_sim.servers.relational.lock_table import LockTable
from tests.likeness.mysql_play import Difference
from tests.likeness.mysql_rounds import Play, play_rounds
from tests.likeness.play import RealTime, rounds, serving
from tests.mysql.server import Server
from tests.mysql.server import serving as mariadb


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with mariadb() as server:
        server.execute("CREATE USER bob@'%' IDENTIFIED BY 'secret'")
        server.execute("GRANT ALL ON *.* TO bob@'%'")
        yield server


def test_random_statements_are_answered_alike(server: Server) -> None:
    play_rounds(server, range(rounds(4)))


def change_release(old: Callable[..., object]) -> Callable[..., object]:
    """A release that promotes nobody."""

    def release(table: LockTable, name: str, owner: str, linger: int, now: int) -> object:
        seat = table.seats.get(name)
        place = None if seat is None else seat.line.find(owner)
        if seat is not None and place is not None and not linger:
            seat.line.places.remove(place)
            return place.holds(now), []
        return old(table, name, owner, linger, now)

    return release


PLANTED: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "a release promotes nobody": lambda: patch.object(LockTable, "release", change_release(LockTable.release)),
    "another error for who was killed": lambda: patch.object(errors, "interrupted", errors.unknown_command),
    "a token is one too high": lambda: patch.object(
        procedures, "numbers_of", lambda taken: f"{taken.token and taken.token + 1},0,0,0,0"
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_difference_is_found(server: Server, planted: str) -> None:
    with PLANTED[planted](), pytest.raises(Difference):
        play_rounds(server, range(40))


@pytest.mark.parametrize(
    ("user", "password", "database", "plugin"),
    [
        (b"bob", b"secret", b"likeness", b"mysql_native_password"),
        (b"bob", b"wrong", b"likeness", b"mysql_native_password"),
        (b"bob", b"", b"likeness", b"mysql_native_password"),
        (b"eve", b"secret", b"likeness", b"mysql_native_password"),
        (b"bob", b"secret", b"nowhere", b"mysql_native_password"),
        (b"bob", b"secret", b"likeness", b"caching_sha2_password"),
        (b"bob", b"wrong", b"likeness", b"caching_sha2_password"),
    ],
)
def test_who_logs_in_is_answered_alike(
    server: Server, user: bytes, password: bytes, database: bytes, plugin: bytes
) -> None:
    pair = Play(server, "likeness").pair()
    with closing(pair.socket):
        pair.log_in(user, password, database, plugin)
        pair.ended()


def test_a_password_that_changes_is_asked_for_at_the_next_log_in(server: Server) -> None:
    play = Play(server, "likeness")
    first, second = play.pair(), play.pair()
    with closing(first.socket), closing(second.socket):
        first.log_in(b"bob", b"secret", b"likeness")
        server.execute("ALTER USER bob@'%' IDENTIFIED BY 'other'")
        play.model.users["bob"] = "other"
        try:
            second.log_in(b"bob", b"secret", b"likeness")
            first.say(b"\x03DO 0")
            assert second.ended()
        finally:
            server.execute("ALTER USER bob@'%' IDENTIFIED BY 'secret'")


def test_what_is_no_command_is_answered_alike(server: Server) -> None:
    play = Play(server, "likeness")
    pair = play.pair()
    with closing(pair.socket):
        pair.log_in(b"root", b"", b"likeness")
        for body in (b"\x03nonsense", b"\x60", b"\x17\x63\0\0\0\0\x01\0\0\0", b"\x03CALL holdfast_tidy(1)"):
            pair.say(body)
        bounds = {b"first": b"x'61'", b"last": b"x'62'"}
        pair.say(b"\x03" + codec.SURVEY % {b"now": short_cuts.NOW, b"contended": b"0", **bounds})
        pair.say_out_of_order()
        assert pair.ended()


def test_a_session_that_is_silent_for_too_long_is_ended(server: Server) -> None:
    play = Play(server, "likeness")
    pair, other = play.pair(), play.pair()
    with closing(pair.socket), closing(other.socket):
        for one in (pair, other):
            one.log_in(b"root", b"", b"likeness")
        pair.say(b"\x03SELECT GET_LOCK('mine', 0)")
        pair.say(b"\x03SET SESSION wait_timeout = 1")
        play.host.advance(1.0)
        assert pair.ended()
        other.say(b"\x03SELECT GET_LOCK('mine', 0)")


def test_there_are_too_many_connections() -> None:
    with mariadb({"max-connections": "10"}) as server:
        play = Play(server, "likeness")
        play.model.most_sessions = 11  # one more than is set is kept for an administrator, and we are one
        pairs = [play.pair() for _ in range(11)]
        for pair in pairs:
            pair.log_in(b"root", b"", b"likeness")
        refused = play.refused()
        assert b"Too many connections" in refused
        for pair in pairs:
            pair.socket.close()


@pytest.mark.parametrize("scheme", ["mysql", "mysql+session"])
def test_todays_client_works_with_the_model(scheme: str) -> None:
    host = RealTime(Random(1))
    model = MariaDBServer(host, "served")
    with serving(model, host) as port:
        url = f"{scheme}://root@127.0.0.1:{port}/served"
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
            with one.lock("job", timeout=0):
                pass
