"""Takes and releases that leave in one write, as one call of one program: half the work for the server.

1. A take or release that comes while enough connections are busy (`BUSY_COUNT`) stands in the pool's line, for a
   moment (`PATIENCE_S`). Whoever gets the next connection carries out its own request and those behind it. So a server
   that is near gets few calls of many, and one that is far, or a connection that is dead, keeps nobody waiting.
2. While requests come in crowds (tasks: all in one turn of the loop), the first that has a connection lets the others
   in before it sends.
3. The programs do what is usual: take what is free, release what nobody waits for. All else is made as a call of its
   own, and so is everything if the server does not want many in one (a proxy that spreads keys over servers).
4. Each is told by itself, as if it had been alone. A call of many that has no answer has none for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..._core.flow import NEW_EVENT, NOW, Flow, Sleep
from ...errors import OutcomeUnknown
from ..queue_backend import Release, Take, Taken
from .codec import NOWHERE, Codec
from .connection import RedisConnection
from .error_mapping import cannot_read, no_answer
from .pool import RedisPool, Waiter
from .programs import Program, program
from .resp import Error, Reply

MOST_COUNT = 128
"""So many at once: for as long as a call of them takes, the server does nothing else."""
BUSY_COUNT = {True: 1, False: 32}
"""So many connections are used before requests stand in a line, where it is cheap to wake another flow, and else.

Measured: tasks that are put together cost half of what they cost with a connection each; for threads, whose waking
needs the system, it is the other way round.
"""
PATIENCE_S = 0.1
"""A request that stands in the line for so long has a connection of its own: the server, or the way to it, is slow."""


class Nobody:
    """The event of a flow that does not wait."""

    def set(self) -> None:
        pass


NOBODY = Nobody()


class BatchCall(NamedTuple):
    """One call for many."""

    program: Program
    waiters: Sequence[Waiter]
    words: bytes
    read: Callable[[Reply], object]
    """What is told to one of them; None: it is to make a call of its own."""

    def frame(self, with_source: bool = False) -> bytes:
        size = 1 + 3 * len(self.waiters)
        call = self.program.call_with_source if with_source else self.program.call
        return call(size) + self.words


class Batching:
    """Carries out requests together, on the connections of one pool."""

    def __init__(self, pool: RedisPool, codec: Codec) -> None:
        self._pool = pool
        self._codec = codec
        self.allowed = True
        """The server takes many in one call, as far as is known."""
        self.gathers = False
        """Requests come in crowds (rule 2)."""
        self.busy_count = BUSY_COUNT[False]
        self.lingering = False
        """A flow with a connection lets others in first."""

    @property
    def due(self) -> bool:
        """One more request had better stand in the line than have a connection of its own."""
        return self.allowed and self._pool.count >= self.busy_count

    def join(self, request: Take | Release, deadline: float) -> Flow[Waiter]:
        """Answers when there is a connection for this flow alone, or its request has been carried out with others.

        Neither: it is to have a connection of its own, or if it was `sent`, to be made as a call of its own.
        """
        waiter = Waiter((yield NEW_EVENT), deadline, request)
        now: float = yield NOW
        waiter.until = min(deadline, now + PATIENCE_S)
        if self._pool.closed or (self._pool.idle and not self.lingering):
            return waiter
        link = yield from self._pool.wait_in_line(waiter)
        if link is None:
            if waiter.sent and not waiter.over:
                raise no_answer(TimeoutError())
            return waiter
        return (yield from self._lead(waiter, link))

    def linger(self, link: RedisConnection, request: Take | Release, deadline: float) -> Flow[Waiter]:
        """Like `join`, with an idle connection: others are about to come, so they are let in first."""
        self.lingering = self.gathers = True
        try:
            yield Sleep(0.0)
        except BaseException:
            self.gathers = False
            self._pool.put(link)
            raise
        finally:
            self.lingering = False
        waiter = Waiter(NOBODY, deadline, request)
        waiter.connection = link
        return (yield from self._lead(waiter, link))

    def _lead(self, waiter: Waiter, link: RedisConnection) -> Flow[Waiter]:
        group = self._take_along(waiter)
        self.gathers = len(group) > 1
        if len(group) == 1:
            waiter.sent = False
        else:
            waiter.connection = None
            yield from self._carry_out(link, group, waiter.deadline)
            if waiter.error is not None:
                raise waiter.error
        return waiter

    def _take_along(self, mine: Waiter) -> list[Waiter]:
        """This one and those in the line that have no less time: the call ends when the time of its leader does."""
        group = [mine]
        mine.sent = True
        for waiter in list(self._pool.line):
            if waiter.request is not None and waiter.deadline >= mine.deadline and len(group) < MOST_COUNT:
                self._pool.line.remove(waiter)
                waiter.sent = True
                group.append(waiter)
        return group

    def _carry_out(self, link: RedisConnection, group: Sequence[Waiter], deadline: float) -> Flow[None]:
        batches = self._batches(group)
        frames = [batch.frame() for batch in batches]
        replies: list[Reply] = []
        failure: Exception | None = None
        again = True
        try:
            replies = yield from link.exchange_all(frames, deadline)
            for number, reply in enumerate(replies):
                if isinstance(reply, Error):
                    replies[number] = yield from self._with_source(link, batches[number], reply, deadline)
        except BaseException as error:
            self._pool.drop(link)
            if isinstance(error, ConnectionError):
                self._pool.drop_idle()  # the server has ended it: each is made again
            elif isinstance(error, OSError):
                self._pool.drop_idle()
                failure, again = no_answer(error), False
            else:
                raise
        else:
            self._pool.put(link)
            again = False
        finally:
            for number, batch in enumerate(batches):
                said = replies[number] if number < len(replies) else None
                self._tell(batch, said, failure, again)

    def _with_source(self, link: RedisConnection, batch: BatchCall, error: Error, deadline: float) -> Flow[Reply]:
        """The same call, for a server that does not know the program, or cannot read its first line."""
        if error.code == "NOSCRIPT":
            return (yield from link.exchange(batch.frame(with_source=True), deadline))
        if batch.program.plain is not None and cannot_read(error):
            self._codec.do_without_flags()
            plain = batch._replace(program=batch.program.plain)
            return (yield from link.exchange(plain.frame(with_source=True), deadline))
        return error

    def _tell(self, batch: BatchCall, said: Reply, failure: Exception | None, again: bool) -> None:
        if isinstance(said, Error):
            self.allowed = False  # it does not want so many in one call; each by itself, from now on
        each = said if isinstance(said, list) else [None] * len(batch.waiters)
        for waiter, one in zip(batch.waiters, each, strict=True):
            waiter.reply = batch.read(one)
            waiter.again = again
            if failure is not None:
                waiter.error = OutcomeUnknown(str(failure))
            waiter.wake()

    def _batches(self, group: Sequence[Waiter]) -> list[BatchCall]:
        takes, releases = [], []
        take_words, release_words = [], []
        for waiter in group:
            if isinstance(waiter.request, Take):
                takes.append(waiter)
                take_words.append(self._codec.take_words(waiter.request.claims[0], NOWHERE))
            elif waiter.request is not None:
                releases.append(waiter)
                release_words.append(self._codec.release_words(waiter.request.claim))
        batches = []
        if takes:
            batches.append(BatchCall(program("takes"), takes, _join(take_words), _taken))
        if releases:
            batches.append(BatchCall(self._codec.releases, releases, _join(release_words), _released))
        return batches


def _join(words: Sequence[tuple[str, str]]) -> bytes:
    count = str(len(words))
    text = "".join([key for key, _ in words]) + "".join([rest for _, rest in words])
    return f"${len(count)}\r\n{count}\r\n{text}".encode()


def _taken(said: Reply) -> list[Taken] | None:
    return [Taken(int(said))] if isinstance(said, bytes) else None


def _released(said: Reply) -> bool | None:
    return bool(said) if said in (0, 1) and said is not None else None
