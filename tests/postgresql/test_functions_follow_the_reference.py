"""The functions at the server answer every sequence of requests as the reference does.

It is played by `tests/relational/reference.py`; the server's clock is one function, `holdfast_now`, replaced here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.backends.postgresql.codec import Codec
from holdfast.backends.queue_backend import Push
from holdfast.backends.relational.batch import LookAll
from holdfast.backends.relational.replies import push_of
from tests.postgresql.house import connector
from tests.postgresql.server import Server
from tests.relational.reference import TOLD_BY_THE_REPLY, reply_of, same_answers, tidied_all_the_time
from tests.unit.requests import TICK

SEEDS = 40
OUR_CLOCK = """CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS
               $$ SELECT current_setting('holdfast.now')::bigint $$"""


class Played:
    """One session at the server, with a clock of its own."""

    def __init__(self, url: str) -> None:
        self.link = connector(url).dial()
        self._payloads: list[bytes] = []
        self.link.connection.heard = self._payloads.append
        self.link.say(OUR_CLOCK.encode(), 5.0)
        self.link.say(b"LISTEN box", 5.0)

    def begin(self, namespace: str) -> None:
        self._home = f"{namespace}/".encode()
        self._codec = Codec(namespace, "host", 7)

    def ask(self, request: Any, now: int) -> tuple[Any, list[tuple[str, Push]]]:
        self.link.say(b"SET holdfast.now = %d" % now, 5.0)
        at_home = now % (2 * TICK) < TICK or isinstance(request, LookAll)  # a release by others is not
        wake = b"box" if at_home or not isinstance(request, TOLD_BY_THE_REPLY) else b"elsewhere"
        reply = self.link.ask(self._codec.write(request, wake), 5.0)
        self.link.say(b"SELECT 1", 5.0)  # notifications come before its answer
        heard = [push_of(*payload.split()) for payload in self._heard()]
        if not isinstance(request, TOLD_BY_THE_REPLY):
            return reply, heard
        assert not (heard if at_home else reply.pushes), "told twice, or the wrong way"
        return reply_of(reply), [*heard, *reply.pushes]

    def tidy(self) -> None:
        self.link.ask(self._codec.tidy(1_000_000), 5.0)
        self.link.say(b"SELECT 1", 5.0)
        self._heard()

    def _heard(self) -> list[bytes]:
        payloads = self._payloads[:]
        self._payloads.clear()
        return payloads


@pytest.fixture(scope="module")
def played(server: Server) -> Iterator[Played]:
    server.execute("CREATE DATABASE reference")
    played = Played(server.url("reference"))
    yield played
    played.link.close()


@pytest.mark.parametrize("mixed", [False, True], ids=["mutexes", "every kind"])
def test_same_answers_as_the_reference(played: Played, mixed: bool) -> None:
    same_answers(played, SEEDS, mixed)


def test_housekeeping_takes_nothing_from_anybody(played: Played) -> None:
    tidied_all_the_time(played)
