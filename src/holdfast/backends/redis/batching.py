"""Takes and releases that leave in one write, as one call of one program: half the work for the server.

1. A request that comes while enough connections are busy (`BUSY_COUNT`) waits for a carrier: a flow that has a
   connection, and carries out all that wait, in one call, again and again until nobody waits. So a server that is near
   gets few calls of many. Whoever it tells the reply may ask again before it looks who waits: such tasks go in step.
2. Nobody waits for longer than `PATIENCE_S`: then another carrier opens another connection. So one that is dead, or a
   server that is far, keeps nobody waiting.
3. Who would have to subscribe before it queues, and whoever meets an error, makes a call of its own; and so does
   everybody if the server does not want many in one (a proxy that spreads keys over servers). One that is alone in its
   call is given the connection.
4. Each is told by itself, as if it had been alone. A call of many that has no answer has none for each of them. It ends
   when the time of its first one does, so whoever has less time than those before does not wait here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ..._core.flow import NEW_EVENT, NOW, Flow, PendingReply, Sleep, Spawn, Tell, WaitEvent, WakeEvent
from ...errors import OutcomeUnknown
from ...ports import Rest
from ..queue_backend import Release, Take, Taken
from .codec import NOT_YET_HEARING, Codec
from .connection import RedisConnection
from .error_mapping import cannot_read, no_answer
from .pool import MOST_COUNT as MOST_CONNECTIONS_COUNT
from .pool import RedisPool, Waiter
from .programs import Program, program
from .replies import one_taken
from .resp import Error, Reply, bulks

LEAST_COUNT, MOST_COUNT = 32, 128
"""So many at once: for as long as a call of them takes, the server does nothing else. So it is few, unless so many wait
(`BACKLOG_RATIO`) that calls of a few would not get through in time."""
BACKLOG_RATIO = 8
BUSY_COUNT = {True: 1, False: MOST_CONNECTIONS_COUNT}
"""So many connections are used before requests wait for a carrier, where it is cheap to wake another flow, and else.

Measured: tasks that are put together cost half of what they cost with a connection each; for threads, whose waking
needs the system, it is the other way round, with 8 of them as with 64.
"""
PATIENCE_S = 0.1
"""A request that waits for so long has another carrier: the server, or the way to it, is slow."""
NEAR_S = 0.01
"""A server that answers within this time is near: one call of many costs less than a connection that is idle."""

Batched: TypeAlias = "list[Taken] | bool"


class RedisRest(Rest):
    """What is left of a call: read `said` on its connection, or make it by itself."""

    __slots__ = ("again", "link", "said")

    def __init__(
        self, link: RedisConnection | None = None, said: bytes | BaseException | None = None, again: bool = False
    ) -> None:
        self.link = link
        """Its own from now on. With nothing `said`, nothing was sent on it."""
        self.said = said
        self.again = again
        """It may have been carried out."""


class EventReply:
    """The reply that a flow waits for."""

    __slots__ = ("event", "told", "value")

    def __init__(self, event: WakeEvent) -> None:
        self.event = event
        self.told = False
        self.value: Batched | RedisRest = RedisRest()

    def set_result(self, value: object) -> None:
        assert isinstance(value, list | bool | RedisRest)
        self.value = value
        self.told = True
        self.event.set()

    answer = set_result


Joined: TypeAlias = tuple[Take | Release, float, PendingReply]
"""A request that waits for a carrier, or is being carried out; its deadline, and where its reply goes."""


class BatchCall(NamedTuple):
    """One call for many."""

    program: Program
    group: Sequence[Joined]
    words: bytes
    read: Callable[[Reply], Batched | None]
    """What is told to one of them; None: it is to make a call of its own."""
    size: int

    def frame(self, with_source: bool = False) -> bytes:
        size = self.size
        call = self.program.call_with_source if with_source else self.program.call
        return call(size) + self.words


class Batching:
    """Carries out requests together, on the connections of one pool. `forget` is told each owner that was released."""

    def __init__(
        self, pool: RedisPool, codec: Codec, forget: Callable[[str], None], channel: Callable[[], str]
    ) -> None:
        """`channel` is where pushes reach all of them, or `NOT_YET_HEARING`."""
        self._pool = pool
        self._codec = codec
        self._forget = forget
        self._channel = channel
        self.allowed = True
        """The server takes many in one call, as far as is known."""
        self.busy_count = BUSY_COUNT[False]
        self._waiting: list[Joined] = []
        self.carriers = 0
        """Flows that carry out requests of others, or are about to."""
        self._near = True
        self._watched = False

    @property
    def due(self) -> bool:
        """One more request had better wait for a carrier than have a connection of its own."""
        pool = self._pool
        if not self.allowed or pool.count < self.busy_count:
            return False
        return not pool.idle or (self.carriers > 0 and self._near)

    def join(
        self, request: Take | Release, deadline: float, reply: PendingReply, start: Callable[[Flow[None]], object]
    ) -> bool:
        """Wait for a carrier; False where that is not possible (rule 4, or all is closed)."""
        waiting = self._waiting
        if self._pool.closed or (waiting and deadline < waiting[-1][1]):
            return False
        waiting.append((request, deadline, reply))
        if not self.carriers:
            self.carriers, self._near = 1, True
            start(self._carry())
            if not self._watched:
                self._watched = True
                start(self._watch())
        return True

    def call(self, request: Take | Release, deadline: float) -> Flow[Batched | RedisRest]:
        """The same for a flow, which waits until it is told."""
        reply = EventReply((yield NEW_EVENT))
        carriers: list[Flow[None]] = []
        if not self.join(request, deadline, reply, carriers.append):
            return RedisRest()
        try:
            for flow in carriers:
                if (yield Spawn(flow)) is False:
                    if flow is not carriers[0]:
                        self._watched = False
                        continue
                    self.carriers = 0
                    self._send_away()
            while not reply.told:
                now: float = yield NOW
                if now >= deadline:
                    return RedisRest() if self._leave(reply) else RedisRest(said=no_answer(TimeoutError()))
                if not reply.told:
                    yield WaitEvent(reply.event, deadline - now)
        except BaseException:
            self._leave(reply)
            raise
        return reply.value

    def _leave(self, reply: PendingReply) -> bool:
        """Whether it was still waiting, and so was not sent."""
        before = len(self._waiting)
        self._waiting = [joined for joined in self._waiting if joined[2] is not reply]
        return len(self._waiting) < before

    def _send_away(self) -> None:
        """There is no carrier for those who wait: each is to see for itself."""
        waiting, self._waiting = self._waiting, []
        for _, _, reply in waiting:
            reply.set_result(RedisRest())

    # Carriers

    def _carry(self, patience_s: float = PATIENCE_S) -> Flow[None]:
        link: RedisConnection | None = None
        try:
            while self._waiting:
                if link is None:
                    link = yield from self._connection(patience_s)
                else:
                    mine, link = link, None  # it is `_carry_out` that has it now
                    link = yield from self._carry_out(mine)
                    if link is not None and not self._waiting:
                        yield Sleep(0.0)  # those who were told may be about to ask again
        except BaseException:
            if link is not None:
                self._pool.drop(link)
                link = None
            raise
        finally:
            self.carriers -= 1
            if link is not None:
                self._pool.put(link)
            if not self.carriers and self._waiting:  # it was ended from outside
                self._send_away()

    def _connection(self, patience_s: float) -> Flow[RedisConnection | None]:
        """One that is idle or comes free within the patience, or else a new one."""
        pool = self._pool
        now: float = yield NOW
        waiter = Waiter((yield NEW_EVENT), now + patience_s)
        try:
            if (
                not pool.idle
                and not pool.closed
                and patience_s
                and (link := (yield from pool.wait_in_line(waiter))) is not None
            ):
                return link
            return (yield from pool.take(self._waiting[0][1])) if self._waiting else None
        except Exception:  # noqa: BLE001  each is told the same when it tries by itself
            self._send_away()
            return None

    def _carry_out(self, link: RedisConnection) -> Flow[RedisConnection | None]:
        """Answers with the connection, unless it is gone."""
        count = min(MOST_COUNT, max(LEAST_COUNT, len(self._waiting) // BACKLOG_RATIO))
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        if len(group) == 1:
            yield Tell([(group[0][2], RedisRest(link))])
            return None
        batches = self._batches(group)
        deadline = group[0][1]
        try:
            sent: float = yield NOW
            replies = yield from link.exchange_all([batch.frame() for batch in batches], deadline)
            for number, reply in enumerate(replies):
                if isinstance(reply, Error):
                    replies[number] = yield from self._with_source(link, batches[number], reply, deadline)
            now: float = yield NOW
        except BaseException as error:
            self._pool.drop(link)
            lost: OutcomeUnknown | None = None
            if isinstance(error, OSError):
                self._pool.drop_idle()  # it may hang, or have ended them all
                if not isinstance(error, ConnectionError):  # then each is made again
                    lost = no_answer(error)
            for _, _, pending in group:
                pending.set_result(RedisRest(said=lost and OutcomeUnknown(str(lost)), again=True))
            if isinstance(error, OSError):
                return None
            raise
        self._near = now - sent < NEAR_S
        told: list[tuple[PendingReply, object]] = []
        for batch, reply in zip(batches, replies, strict=True):
            self._read(batch, reply, told)
        yield Tell(told)
        return link

    def _with_source(self, link: RedisConnection, batch: BatchCall, error: Error, deadline: float) -> Flow[Reply]:
        """The same call, for a server that does not know the program, or cannot read its first line."""
        if error.code == "NOSCRIPT":
            return (yield from link.exchange(batch.frame(with_source=True), deadline))
        if batch.program.plain is not None and cannot_read(error):
            self._codec.do_without_flags()
            plain = batch._replace(program=batch.program.plain)
            return (yield from link.exchange(plain.frame(with_source=True), deadline))
        return error

    def _read(self, batch: BatchCall, said: Reply, told: list[tuple[PendingReply, object]]) -> None:
        """What each of them is told."""
        if isinstance(said, Error):
            self.allowed = False  # it does not want so many in one call; each by itself, from now on
        each = said if isinstance(said, list) else [None] * len(batch.group)
        read = batch.read
        for (request, _, pending), one in zip(batch.group, each, strict=True):
            reply = read(one)
            if reply is None:
                told.append((pending, RedisRest()))
            else:
                if request.__class__ is Release:
                    self._forget(request.claim.owner)
                told.append((pending, reply))

    def _batches(self, group: Sequence[Joined]) -> list[BatchCall]:
        takes: list[Joined] = []
        releases: list[Joined] = []
        take_words, release_words = [], []
        codec, channel = self._codec, self._channel()
        for joined in group:
            request = joined[0]
            if isinstance(request, Take):
                takes.append(joined)
                wake = channel if request.queue else NOT_YET_HEARING
                take_words.append(codec.take_words(request.claims[0], wake))
            else:
                releases.append(joined)
                release_words.append(codec.release_words(request.claim))
        batches = []
        if takes:
            noted = b"" if codec.index is None else bulks(codec.index)
            size = 1 + 3 * len(takes) + bool(noted)
            batches.append(BatchCall(program("takes"), takes, _join(take_words) + noted, _taken, size))
        if releases:
            size = 1 + 3 * len(releases)
            batches.append(BatchCall(codec.releases, releases, _join(release_words), _released, size))
        return batches

    def _watch(self) -> Flow[None]:
        """Rule 2."""
        try:
            while self.carriers:
                first = self._waiting[0] if self._waiting else None
                yield Sleep(PATIENCE_S)
                if first is not None and self._waiting and self._waiting[0] is first and self.carriers:
                    self.carriers += 1
                    if (yield Spawn(self._carry(0.0))) is False:
                        self.carriers -= 1
        finally:
            self._watched = False


def _join(words: Sequence[tuple[str, str]]) -> bytes:
    count = str(len(words))
    text = "".join([key for key, _ in words]) + "".join([rest for _, rest in words])
    return f"${len(count)}\r\n{count}\r\n{text}".encode()


def _taken(said: Reply) -> list[Taken] | None:
    return one_taken(said) if said else None


def _released(said: Reply) -> bool | None:
    return bool(said) if said in (0, 1) and said is not None else None
