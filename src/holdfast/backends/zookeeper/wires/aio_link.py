"""One session on an asyncio connection. The rules are those of the blocking link; the loop reads for everybody.

1. A request that went out is awaited as a `Reply`, which a cancellation can not abandon; its timeout is a timer.
2. One task gives the signs of life, attends to the book and connects, first and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ....clock import now as clock
from ....errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from ...line import closed
from ..book import Book
from ..ops import CloseSession, Op, Sync
from ..places import Place
from ..session import Refused, Session, State, Ticket
from ..trouble import unknown
from .dialling import Hosts
from .keeping import LONGEST_DOZE, RETRY_FIRST, RETRY_LAST
from .pace import beat, lasts, session_for, silence
from .switchboard import Switchboard, proves


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class AsyncLink(asyncio.Protocol):
    def __init__(self, hosts: Hosts, ttl: float, least: float, root: str, acl: bytes) -> None:
        self._hosts, self._ttl, self._least, self._root = hosts, ttl, least, root
        self.session = Session(session_for(ttl, least), hosts.address.credentials)
        self.lasts = ttl
        self.proved = clock()
        self.book = Book(acl)
        self._board = Switchboard(self.book)
        self._bells: dict[str, asyncio.Event] = {}
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._up = asyncio.Event()
        self._changed = asyncio.Event()
        """Set when it comes up, and when it never will."""
        self._alarm = asyncio.Event()
        self._dozing_until = 0.0
        self._out: list[bytes] = []
        self.closed = False
        self._failure: BaseException | None = None
        self._task = asyncio.ensure_future(self._keep())

    @property
    def over(self) -> bool:
        return self.session.state is State.GONE

    @property
    def is_up(self) -> bool:
        return self._up.is_set()

    def keep(self, place: Place) -> None:
        now = clock()
        self.book.add(place, now)
        if self._dozing_until > now + 0.1:
            self._alarm.set()

    # Asking

    async def call(self, ops: Sequence[Op], timeout: float, owner: str = "", places: Sequence[Place] = ()) -> Any:
        """The answers; None if the session has ended."""
        sent = clock()
        if not self._up.is_set() and not await self._await_connection(timeout):
            return None
        left = timeout - (clock() - sent)
        for place in places:
            place.link, place.session = self, self.session.id
        if owner and self._board.connect(owner, ops):
            self._bells.setdefault(owner, asyncio.Event())
        ticket = Ticket(len(ops))
        ticket.gate = reply = Reply(loop=self._loop)
        self._send(self.session.ask(ops, ticket))
        timer = self._loop.call_later(max(0.001, left), _settle, reply)
        await reply
        timer.cancel()
        if not ticket.done:
            raise unknown("to a request", timeout)
        if ticket.lost:
            if self.over:
                return None
            raise OutcomeUnknown("the connection to ZooKeeper was lost while a request was under way; try again")
        if sent > self.proved and proves(ops):
            self.proved = sent
        return ticket.answers

    async def _await_connection(self, timeout: float) -> bool:
        """Until there is one. Nothing has been sent yet, so a cancellation may come through."""
        self._alarm.set()
        end = clock() + timeout
        while not self._up.is_set():
            if self.closed:
                raise closed()
            if self.over:
                return False
            if isinstance(self._failure, Misconfigured):
                raise self._failure
            self._changed.clear()
            try:
                async with asyncio.timeout(max(0.0, end - clock())):
                    await self._changed.wait()
            except TimeoutError:
                raise BackendUnavailable(
                    f"no server of {self._hosts.address.shown} could be reached within {timeout:g} s "
                    f"({self._failure}); see that they run"
                ) from self._failure
        return True

    def _send(self, frames: bytes) -> None:
        """What is asked for in one turn of the loop leaves in one write."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frames)

    def _flush(self) -> None:
        frames, self._out = self._out, []
        if self._transport is not None:
            self._transport.write(b"".join(frames))

    async def wait(self, owner: str, timeout: float) -> bool:
        bell = self._bells.setdefault(owner, asyncio.Event())
        try:
            async with asyncio.timeout(timeout):
                if not self.over and not self.closed:
                    await bell.wait()
        except TimeoutError:
            return False
        bell.clear()
        return True

    def forget(self, owner: str) -> None:
        self._bells.pop(owner, None)

    def _ring_all(self) -> None:
        for bell in self._bells.values():
            bell.set()

    # The connection

    def data_received(self, data: bytes) -> None:
        try:
            done, events, answer = self.session.receive(data)
        except ConnectionError as error:
            self._failure = error
            self._drop()
            return
        if answer and self._transport is not None:
            self._transport.write(answer)
        for ticket in done:
            _settle(ticket.gate)
        if events:
            for owner in self._board.events(events):
                if (bell := self._bells.get(owner)) is not None:
                    bell.set()
            if self.book.next == 0.0:
                self._alarm.set()
        if not self._up.is_set() and self.session.state is not State.GREETING:
            self._alarm.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._drop()

    def _drop(self) -> None:
        transport, self._transport = self._transport, None
        self._up.clear()
        self._out.clear()
        if transport is not None:
            transport.abort()
        for ticket in self.session.drop():
            _settle(ticket.gate)
        self._alarm.set()

    async def _connect(self) -> None:
        host, port = self._hosts.current
        sent = clock()
        tls = self._hosts.tls
        name = host if tls is not None else None
        async with asyncio.timeout(max(0.05, silence(self._ttl) / 2)):
            transport, _ = await self._loop.create_connection(lambda: self, host, port, ssl=tls, server_hostname=name)
            self._transport = transport
            transport.write(self.session.greet())
            while self.session.state is State.GREETING:
                self._alarm.clear()
                await self._alarm.wait()
        if self.over:
            self._drop()
        if self.session.state is not State.UP:
            raise self._failure or ConnectionError("the server closed the connection")
        self.lasts = min(self._ttl, lasts(self.session.timeout, self._least))
        self.proved = max(self.proved, sent)
        self._failure = None
        self._up.set()
        self._changed.set()
        self._ring_all()

    # Keeping

    async def _keep(self) -> None:
        try:
            await self._keep_on()
        except Exception as error:  # noqa: BLE001  whoever waits for a connection is told, and the session is over
            self._failure = error
            self.session.end()
            self._drop()
        finally:
            if self.over:
                self.book.end()
                self._ring_all()
            self._changed.set()

    async def _keep_on(self) -> None:
        sign, heard, tries = (Sync(self._root),), clock(), 0
        while not self.closed and not self.over:
            now = clock()
            if not self._up.is_set():
                tries = await self._try_to_connect(tries)
                heard = clock()
                continue
            heard = max(heard, self.proved)
            if now >= heard + beat(self._ttl):
                await self._call(sign)
                heard = clock()
            elif self.book.next <= now:
                await self._attend(now)
            else:
                self._dozing_until = wake = min(heard + beat(self._ttl), self.book.next, now + LONGEST_DOZE)
                await self._doze(wake - now)
                self._dozing_until = 0.0

    async def _doze(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._alarm.wait()
        except TimeoutError:
            pass  # the time has come by itself
        self._alarm.clear()

    async def _call(self, ops: Sequence[Op]) -> Any:
        """A server that does not answer in time is left."""
        transport = self._transport
        try:
            return await self.call(ops, silence(self._ttl))
        except HoldfastError:
            if transport is self._transport:
                self._hosts.next()
                self._drop()
            return None

    async def _attend(self, now: float) -> None:
        work = self.book.due(now)
        ops = [op for _, some in work for op in some]
        answers = await self._call(ops) if ops else None
        if answers is None:
            return
        at = 0
        for place, some in work:
            self.book.done(place, some, answers[at : at + len(some)])
            at += len(some)

    async def _try_to_connect(self, tries: int) -> int:
        try:
            await self._connect()
            return 0
        except Refused as error:
            self._failure = Misconfigured(str(error))
        except (OSError, TimeoutError) as error:
            self._failure = error
        if self.over:
            return tries
        self._drop()
        self._changed.set()
        self._hosts.next()
        if (tries + 1) % len(self._hosts) == 0:
            await self._doze(min(RETRY_LAST, RETRY_FIRST * 2 ** min(10, tries // len(self._hosts))))
        return tries + 1

    async def close(self, timeout: float) -> None:
        """End the session, so that its nodes vanish at once."""
        if self._up.is_set() and not self.over:
            try:
                await self.call((CloseSession(),), timeout)
            except HoldfastError:
                pass  # it will expire
        self.closed = True
        self.session.end()
        self._drop()
        self._ring_all()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def _settle(reply: Reply) -> None:
    if not reply.done():
        reply.set_result(None)
