"""Bugs of what Redis's client makes of replies and pushes, each with the defect of the review (9.…) or the trap (T…)
that it is taken from. Those of its connections are in `redis_connections`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holdfast._core.flow import Flow, Receive
from holdfast.backends.queue_backend import Push
from holdfast.backends.redis import program_calls
from holdfast.backends.redis.client import RedisClient
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.connector import Connector
from holdfast.backends.redis.durability import Durability
from holdfast.backends.redis.error_mapping import no_answer
from holdfast.backends.redis.notifications import Listener
from holdfast.backends.redis.program_calls import ProgramCalls
from holdfast.backends.redis.programs import Program
from holdfast.backends.redis.replies import pushed
from holdfast.backends.redis.resp import NOT_YET, Error, Pushed
from holdfast.backends.redis.server import Server
from holdfast.backends.redis.short_cuts import RedisShortCuts
from holdfast.backends.redis.topology import Topology
from holdfast.errors import Misconfigured

from ...planted.registry import Patch
from .redis_connections import OVERLAP, STUCK
from .registry import client_bug


@client_bug("redis", *OVERLAP, *STUCK, "no flow breaks", "nothing is left behind")
def reply_that_came_late_is_taken(patch: Patch) -> None:
    """A connection whose reply did not come in time is used again, and its reply taken for the next one's (9.40)."""

    def retries(self: RedisShortCuts, link: RedisConnection, error: BaseException) -> bool:
        if isinstance(error, TimeoutError):
            self._pool.put(link)
            raise no_answer(error) from error
        return honest(self, link, error)

    honest = RedisShortCuts._retries
    patch(RedisShortCuts, "_retries", retries)


@client_bug("redis", *OVERLAP, "a lease begins alive")
def push_to_another_is_taken(patch: Patch) -> None:
    """A push is taken for one's own grant by whoever waits on the connection (T18)."""

    def await_push(self: RedisConnection, owner: str, deadline: float) -> Flow[Push | None]:
        while True:
            while (message := self._gets()) is not NOT_YET:
                said = message[2] if isinstance(message, Pushed) and message[0] == b"message" else b""
                if (push := pushed(bytes(said))[1]) is not None:
                    return push
            try:
                data: bytes = yield Receive(self.connection, deadline)
            except TimeoutError:
                return None
            if not data:
                raise ConnectionError("the server closed the connection")
            self._feed(data)

    def feed(self: Listener, data: bytes) -> None:
        self._reader.feed(data)
        while (message := self._reader.gets()) is not NOT_YET:
            if isinstance(message, list) and len(message) == 3 and message[0] == b"message" and self._waiting:
                self._tell(self._waiting.popitem()[1], pushed(message[2])[1])

    patch(RedisConnection, "await_push", await_push)
    patch(Listener, "_feed", feed)


@client_bug("redis", *STUCK, "an idle connection costs nobody a request")
def fail_over_of_a_cluster_is_not_followed(patch: Patch) -> None:
    """Who has what is learned once: neither a node that is gone nor a redirection changes it (9.13)."""

    def nothing(self: Topology, *args: Any) -> Flow[None]:
        yield from ()

    def look(self: Topology, deadline: float) -> Flow[None]:
        if not self._slots.nodes():
            yield from honest(self, deadline)

    honest = Topology.look
    patch(Topology, "look", look)
    patch(Topology, "suspect", nothing)
    patch(Topology, "moved", nothing)


@client_bug("redis", *STUCK)
def primary_of_before_is_dialled(patch: Patch) -> None:
    """Sentinels are asked once, and their first answer is dialled for ever (9.13)."""

    def ask(self: Connector, server: Server, frame: bytes, deadline: float) -> Flow[object]:
        known: dict[bytes, object] = self.__dict__.setdefault("answers", {})
        if b"SENTINEL" not in frame:
            return (yield from honest(self, server, frame, deadline))
        if frame not in known:
            known[frame] = yield from honest(self, server, frame, deadline)
        return known[frame]

    honest = Connector.ask
    patch(Connector, "ask", ask)


@client_bug("redis", *STUCK, "an idle connection costs nobody a request")
def forgotten_program_is_final(patch: Patch) -> None:
    """A server that was restarted, or told SCRIPT FLUSH, does not know a program, and is not sent it again (9.25)."""

    def take_with_source(self: ProgramCalls, order: Any, deadline: float, **options: Any) -> Flow[Any]:
        sent: set[Program] = self.__dict__.setdefault("sent", set())
        program = order.program
        if program in sent:
            again = SimpleNamespace(call=program.call, call_with_source=program.call, plain=None)
            order = order._replace(program=again)
        sent.add(program)
        return honest(self, order, deadline, **options)

    honest = ProgramCalls.run
    patch(ProgramCalls, "run", take_with_source)


@client_bug("redis", *OVERLAP)
def grant_that_nobody_confirmed(patch: Patch) -> None:
    """`WAIT` is asked, and its answer not looked at: a fail-over forgets what was promised to survive (T21)."""
    patch(Durability, "check", lambda self, confirmed, reply: None)


@client_bug("redis", *OVERLAP)
def pushed_grant_is_not_confirmed(patch: Patch) -> None:
    """A grant that was pushed counts, though replicas have to confirm grants, and nobody asked them (T21)."""

    def wait(self: RedisClient, owner: str, deadline: float) -> Flow[Any]:
        durability, self._durability = self._durability, None
        try:
            return (yield from honest(self, owner, deadline))
        finally:
            self._durability = durability

    honest = RedisClient.wait
    patch(RedisClient, "wait", wait)


@client_bug("redis", "no flow breaks")
def every_refusal_is_misconfigured(patch: Patch) -> None:
    """A server that loads, is busy, full or read only for a moment is taken for wrong settings (9.34)."""

    def translated(error: Error) -> Exception:
        return Misconfigured(f"Redis refused: {error}")

    patch(program_calls, "translated", translated)
