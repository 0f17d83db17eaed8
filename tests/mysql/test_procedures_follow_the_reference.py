"""The procedures at the server answer every sequence of requests as the reference does.

It is played by `tests/relational/reference.py`, at both isolation levels; the session's clock is set (`SET timestamp`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.backends.mysql.codec import Codec, Order, listener_hear
from holdfast.backends.queue_backend import Push
from holdfast.backends.relational.batch import LookAll
from tests.mysql.conftest import new_database
from tests.mysql.house import connector
from tests.mysql.server import Server
from tests.relational.reference import TOLD_BY_THE_REPLY, reply_of, same_answers, tidied_all_the_time
from tests.unit.requests import TICK

SEEDS = 25
WAKE, ELSEWHERE = 7, 8


class Played:
    """One session at the server, with a clock of its own."""

    def __init__(self, url: str, isolation: str) -> None:
        self.link = connector(url).dial()
        self.link.say(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}".encode(), 5.0)

    def begin(self, namespace: str) -> None:
        self._codec = Codec(namespace, "host", 7)

    def ask(self, request: Any, now: int) -> tuple[Any, list[tuple[str, Push]]]:
        self.link.say(b"SET timestamp = %d.%06d" % divmod(now, 1_000_000), 5.0)
        at_home = now % (2 * TICK) < TICK or isinstance(request, LookAll)  # a release by others is not
        wake = WAKE if at_home or not isinstance(request, TOLD_BY_THE_REPLY) else ELSEWHERE
        reply = self.link.ask(self._codec.write(request, wake), 5.0)
        pushes = self.link.ask(Order(b"CALL holdfast_hear(%d,0,0)" % WAKE, listener_hear(WAKE, 0).read), 5.0)
        if not isinstance(request, TOLD_BY_THE_REPLY):
            return reply, pushes
        assert not (pushes if at_home else reply.pushes), "told twice, or the wrong way"
        return reply_of(reply), [*pushes, *reply.pushes]

    def tidy(self) -> None:
        while self.link.ask(self._codec.tidy(2), 5.0):
            pass
        self.link.say(b"DELETE FROM holdfast_push", 5.0)


@pytest.fixture(scope="module", params=["READ COMMITTED", "REPEATABLE READ"])
def played(server: Server, request: pytest.FixtureRequest) -> Iterator[Played]:
    played = Played(server.url(new_database(server)), request.param)
    yield played
    played.link.close()


@pytest.mark.parametrize("mixed", [False, True], ids=["mutexes", "every kind"])
def test_same_answers_as_the_reference(played: Played, mixed: bool) -> None:
    same_answers(played, SEEDS, mixed)


def test_housekeeping_takes_nothing_from_anybody(played: Played) -> None:
    tidied_all_the_time(played)
