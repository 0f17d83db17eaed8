"""One session on an asyncio connection. The rules are those of the blocking link; the loop reads for everybody.

1. A request that went out is awaited as a `Reply`, which a cancellation can not abandon; its timeout is a timer.
2. One task gives the signs of life, attends to the book and connects, first and again: see `aio_keeping`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ....clock import now as clock
from ....errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from ...queue_backend import closed
from ..book import Book
from ..ops import CloseSession, Op, Watches
from ..places import Place
from ..session import Session, State, Ticket
from ..trouble import unknown
from .aio_keeping import keep
from .dialling import Hosts
from .pace import dialling, lasts, session_for
from .switchboard import Proof, Switchboard, proves, repeatable


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class AsyncLink(asyncio.Protocol):
    def __init__(self, hosts: Hosts, ttl: float, least: float, root: str, acl: bytes) -> None:
        self.hosts, self.ttl, self._least = hosts, ttl, least
        self.session = Session(session_for(ttl, least), hosts.address.credentials)
        self.lasts = ttl
        self._proof = Proof(clock(), ttl, least)
        self.book = Book(acl)
        self._board = Switchboard(self.book)
        self._bells: dict[str, asyncio.Event] = {}
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._up = asyncio.Event()
        self.changed = asyncio.Event()
        """Set when it comes up, and when it never will."""
        self.alarm = asyncio.Event()
        self.dozing_until = 0.0
        self._out: list[bytes] = []
        self.heard = 0.0
        self.closed = False
        self.failure: BaseException | None = None
        self._task = asyncio.ensure_future(keep(self, root))

    @property
    def over(self) -> bool:
        return self.session.state is State.GONE

    @property
    def transport(self) -> asyncio.Transport | None:
        return self._transport

    @property
    def is_up(self) -> bool:
        return self._up.is_set()

    @property
    def proved(self) -> float:
        return self._proof.at

    def unheard(self, now: float) -> float:
        return self._proof.unheard(now)

    def keep(self, place: Place) -> None:
        now = clock()
        self.book.add(place, now)
        if self.dozing_until > now + 0.1:
            self.alarm.set()

    # Asking

    async def call(self, ops: Sequence[Op], timeout: float, owner: str = "", places: Sequence[Place] = ()) -> Any:
        """The answers; None if the session has ended."""
        end = clock() + timeout
        while True:
            sent = clock()
            if not self._up.is_set() and not await self._await_connection(max(0.0, end - sent)):
                return None
            for place in places:
                place.link, place.session = self, self.session.id
            if ops[-1].__class__ is Watches and self._board.connect(owner, ops):
                self._bells.setdefault(owner, asyncio.Event())
            ticket = Ticket(len(ops))
            ticket.gate = reply = Reply(loop=self._loop)
            self._send(self.session.ask(ops, ticket))
            timer = self._loop.call_later(max(0.001, end - clock()), _settle, reply)
            await reply
            timer.cancel()
            if not ticket.done:
                raise unknown("to a request", timeout)
            if not ticket.lost:
                break
            if self.over:
                return None
            if not repeatable(ops) or clock() >= end:
                raise OutcomeUnknown("the connection to ZooKeeper was lost while a request was under way; try again")
        if proves(ops):
            self._proof.note(sent)
        return ticket.answers

    async def _await_connection(self, timeout: float) -> bool:
        """Until there is one. Nothing has been sent yet, so a cancellation may come through."""
        self.alarm.set()
        end = clock() + timeout
        while not self._up.is_set():
            if self.closed:
                raise closed()
            if self.over:
                return False
            if isinstance(self.failure, Misconfigured):
                raise self.failure
            self.changed.clear()
            try:
                async with asyncio.timeout(max(0.0, end - clock())):
                    await self.changed.wait()
            except TimeoutError:
                raise BackendUnavailable(
                    f"no server of {self.hosts.address.shown} could be reached within {timeout:g} s "
                    f"({self.failure}); see that they run"
                ) from self.failure
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

    async def wait(self, owner: str, timeout: float) -> list[str] | None:
        event = self._bells.setdefault(owner, asyncio.Event())
        try:
            async with asyncio.timeout(timeout):
                if not self.over and not self.closed:
                    await event.wait()
        except TimeoutError:
            return None
        event.clear()
        return self._board.hear(owner)

    def forget(self, owner: str) -> None:
        self._bells.pop(owner, None)
        self._board.forget(owner)

    def ring_all(self) -> None:
        for event in self._bells.values():
            event.set()

    # The connection

    def data_received(self, data: bytes) -> None:
        self.heard = clock()
        try:
            done, events, answer = self.session.receive(data)
        except ConnectionError as error:
            self.failure = error
            self.drop()
            return
        if answer and self._transport is not None:
            self._transport.write(answer)
        for ticket in done:
            _settle(ticket.gate)
        if events:
            for owner in self._board.events(events):
                if (event := self._bells.get(owner)) is not None:
                    event.set()
            if self.book.next == 0.0:
                self.alarm.set()
        if not self._up.is_set() and self.session.state is not State.GREETING:
            self.alarm.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self.drop()

    def drop(self) -> None:
        transport, self._transport = self._transport, None
        self._up.clear()
        self._out.clear()
        if transport is not None:
            transport.abort()
        self._board.lost()
        for ticket in self.session.drop():
            _settle(ticket.gate)
        self.alarm.set()

    async def connect(self) -> None:
        host, port = self.hosts.current
        sent = clock()
        tls = self.hosts.tls
        name = host if tls is not None else None
        async with asyncio.timeout(dialling(self.ttl)):
            transport, _ = await self._loop.create_connection(lambda: self, host, port, ssl=tls, server_hostname=name)
            self._transport = transport
            transport.write(self.session.greet())
            while self.session.state is State.GREETING:
                self.alarm.clear()
                await self.alarm.wait()
        if self.over:
            self.drop()
        if self.session.state is not State.UP:
            raise self.failure or ConnectionError("the server closed the connection")
        self.lasts = min(self.ttl, lasts(self.session.timeout, self._least))
        self._proof.note(sent)
        self.failure = None
        self._up.set()
        self.changed.set()
        self.ring_all()

    async def close(self, timeout: float) -> None:
        """End the session, so that its nodes vanish at once."""
        try:
            if self._up.is_set() and not self.over:
                await self.call((CloseSession(),), timeout)
        except HoldfastError:
            pass  # it will expire
        finally:  # a cancellation leaves nothing behind either
            self.closed = True
            self.session.end()
            self.drop()
            self.ring_all()
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def _settle(reply: Reply) -> None:
    if not reply.done():
        reply.set_result(None)
