"""One call of a program, at whichever server has its key; and plain commands, for opening and for surveys.

A connection that was idle may have been ended by the server, unnoticed. What finds it so is made again, once, on a new
one, unless it must not be carried out twice: that looks at the connection first.
"""

from __future__ import annotations

from typing import Any

from ..._core.flow import NOW, Flow
from ...errors import BackendUnavailable
from .codec import Codec, Order
from .connection import RedisConnection
from .durability import Durability
from .error_mapping import ELSEWHERE, cannot_read, no_answer, translated
from .pool import RedisPool
from .resp import Error, Reply, command
from .servers import Servers

TRIES_COUNT = 5
"""How often a request follows a redirection, or tries another connection when its own was found broken."""


class ProgramCalls:
    """The general way of a request, for one client."""

    def __init__(self, servers: Servers, codec: Codec, durability: Durability | None) -> None:
        self._servers = servers
        self._codec = codec
        self._durability = durability

    def run(self, order: Order, deadline: float, *, confirmed: bool = False, repeatable: bool = True) -> Flow[Any]:
        """One call of a program. `repeatable`: a second one does no harm (rule 3)."""
        frame = order.program.call(order.size) + order.words
        pool = yield from self._servers.having(order.key, deadline)
        asking = again = False
        for attempt in range(TRIES_COUNT):
            try:
                link = yield from (pool.take(deadline) if repeatable else _take_alive(pool, deadline))
            except BackendUnavailable:
                yield from self._servers.failed(pool)
                if (other := (yield from self._servers.instead(pool, order.key, deadline))) is None:
                    raise
                pool = other
                continue
            try:
                reply = yield from self._exchange(link, frame, deadline, confirmed, asking)
            except BaseException as error:
                pool.drop(link)
                if not isinstance(error, OSError) or isinstance(error, BackendUnavailable):
                    raise
                if isinstance(error, ConnectionError) and not again and repeatable:
                    pool.drop_idle()
                    again = True
                    continue
                yield from self._servers.failed(pool)
                raise no_answer(error) from error
            pool.put(link)
            if not isinstance(reply, Error):
                return order.read_again(reply) if again else order.read(reply)
            if reply.code == "NOSCRIPT":
                frame = order.program.call_with_source(order.size) + order.words
            elif order.program.plain is not None and cannot_read(reply):
                self._codec.do_without_flags()
                order = order._replace(program=order.program.plain)
                frame = order.program.call_with_source(order.size) + order.words
            elif reply.code in ELSEWHERE and attempt < TRIES_COUNT - 1:
                pool, asking = yield from self._servers.elsewhere(reply, pool, order.key, deadline)
            else:
                raise translated(reply)
        raise BackendUnavailable("Redis kept sending the request elsewhere; its topology is changing")

    def _exchange(
        self, link: RedisConnection, frame: bytes, deadline: float, confirmed: bool, asking: bool
    ) -> Flow[Reply]:
        frames = [command("ASKING"), frame] if asking else [frame]
        durability = self._durability if confirmed else None
        if durability is not None:
            now: float = yield NOW
            frames.append(durability.frame(deadline - now))
        replies = yield from link.exchange_all(frames, deadline)
        reply = replies[1 if asking else 0]
        if durability is not None:
            durability.check(replies[-1], reply)
        return reply

    def command(self, pool: RedisPool, frame: bytes, deadline: float) -> Flow[Any]:
        """A plain command to one server, of a kind that may be repeated."""
        [reply] = yield from self.commands(pool, [frame], deadline)
        if isinstance(reply, Error):
            raise translated(reply)
        return reply

    def commands(self, pool: RedisPool, frames: list[bytes], deadline: float) -> Flow[list[Any]]:
        """Several of them in one write; an error reply is a reply."""
        for again in (False, True):
            try:
                link = yield from pool.take(deadline)
            except BackendUnavailable:
                yield from self._servers.failed(pool)
                raise
            try:
                replies = yield from link.exchange_all(frames, deadline)
            except BaseException as error:
                pool.drop(link)
                if not isinstance(error, OSError):
                    raise
                if isinstance(error, ConnectionError) and not again:
                    pool.drop_idle()
                    continue
                yield from self._servers.failed(pool)
                raise no_answer(error) from error
            pool.put(link)
            break
        return replies


def _take_alive(pool: RedisPool, deadline: float) -> Flow[RedisConnection]:
    """One that the server has not ended, as far as can be seen: for what must not be sent twice."""
    while pool.idle:
        link = pool.idle.pop()
        if not link.connection.readable():
            return link
        pool.drop(link)
    return (yield from pool.take(deadline))
