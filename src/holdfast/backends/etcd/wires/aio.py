"""The asyncio wire: each request on a free connection of a small pool; each waiter on one of its own.

The rules are those of the blocking wire. Who finds no free connection waits for one, at most as long as its request may
take; nothing is sent behind another request, because the gateway answers in order: one would wait for the other.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from ....errors import BackendUnavailable, HoldfastError, OutcomeUnknown
from ...queue_backend import closed
from ..rpc import Post, Rpc
from ..watch import HANDED, Watch
from .address import Address
from .aio_link import AsyncEar, AsyncLink, Reply
from .http import Unauthenticated, log_in
from .members import Members
from .wire import AFTER_A_BROKEN_WATCH, AT_ONCE, FAREWELL, left

MOST = 16
"""Connections for requests: etcd carries out one after the other on each."""
_errands: set[asyncio.Task[Any]] = set()
_abandoned: list[Any] = []
"""What a forked child has of its parent's: neither used nor closed, for its transports are bound to a loop."""


class AsyncEtcdWire:
    """Carries out requests in the caller's loop."""

    def __init__(
        self,
        address: Address,
        watch_of: Callable[[str], Watch | None],
        farewell: Callable[[], list[Rpc]],
        forget: Callable[[], None],
    ) -> None:
        self._address = address
        self._watch_of, self._farewell, self._forget = watch_of, farewell, forget
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._members = Members(self._address)
        self._idle: list[AsyncLink] = []
        self._links: set[AsyncLink] = set()
        self._dialling = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._ears: set[AsyncEar] = set()
        self._parked: dict[Watch, AsyncEar] = {}

    def call(self, request: Any, timeout: float) -> Awaitable[Any]:
        if self._closed:
            raise closed()
        if request.__class__ is Post:
            self._later(self._tell(request, timeout), None)
            return _nothing()
        link = self._free()
        if link is None:
            reply = Reply()
            self._later(self._carefully(request, timeout), reply)
            return reply
        first = link.ask(request, self._members.head(link.index), timeout)
        if not self._address.user:
            return first
        return self._with_token(first, request, timeout)

    def _free(self) -> AsyncLink | None:
        """A connection that is open still: its end may have come, and nobody has had time to hear of it."""
        while self._idle:
            link = self._idle.pop()
            if link.open and link.index == self._members.at and not link.ended:
                return link
            self._drop(link)
        return None

    async def _with_token(self, first: Reply, request: Any, timeout: float) -> Any:
        end = time.monotonic() + timeout
        try:
            return await first
        except Unauthenticated:
            reply = Reply()
            self._later(self._carefully(request, left(end)), reply)
            return await reply

    async def _carefully(self, rpcs: Any, timeout: float) -> Any:
        end = time.monotonic() + timeout
        try:
            return await self._ask(rpcs, end)
        except Unauthenticated:
            self._members.token = ""
            link = await self._get(end)
            if self._members.token:
                self._freed(link)
            else:  # one that was open already
                await self._log_in(link, end)
            try:
                return await self._ask(rpcs, end)
            except Unauthenticated as error:
                raise BackendUnavailable(f"etcd did not accept its own token: {error}") from error

    async def _ask(self, rpcs: Any, end: float) -> Any:
        link = await self._get(end)
        return await link.ask(rpcs, self._members.head(link.index), left(end))

    async def _tell(self, post: Post, timeout: float) -> None:
        if (rpc := post.make()) is not None:
            await self._carefully((rpc,), timeout)

    async def _get(self, end: float) -> AsyncLink:
        """A free connection, or a new one, or the next that comes free."""
        while True:
            if (link := self._free()) is not None:
                return link
            if len(self._links) + self._dialling < MOST:
                self._dialling += 1
                try:
                    return await self._dial(end)
                finally:
                    self._dialling -= 1
                    self._next()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                async with asyncio.timeout(left(end)):
                    await turn
            except TimeoutError:
                raise BackendUnavailable("no connection to etcd came free within the time of a request") from None
            if self._closed:
                raise closed()

    async def _dial(self, end: float) -> AsyncLink:
        error: Exception | None = None
        for index, others in self._members.candidates():
            try:
                async with asyncio.timeout(self._members.dial_timeout(left(end), others)):
                    link: AsyncLink = await self._connect(index, partial(AsyncLink, index, self._freed, self._lost))
            except (OSError, TimeoutError) as refusal:
                error = refusal
                continue
            self._links.add(link)
            if self._closed:  # meanwhile
                self._drop(link)
                raise closed()
            self._members.at = index
            if self._address.user and not self._members.token:
                await self._log_in(link, end)
                if link not in self._idle:  # somebody was quicker
                    return await self._get(end)
                self._idle.remove(link)
            return link
        raise self._members.unreachable(error)

    async def _log_in(self, link: AsyncLink, end: float) -> None:
        """A new token, for the user of the URL. The link is free afterwards."""
        rpc = log_in(self._address.user, self._address.password)
        [told] = await link.ask((rpc,), self._members.head(link.index), left(end))
        self._members.token = told["token"]

    async def _connect(self, index: int, make: Callable[[], Any]) -> Any:
        host, port = self._address.endpoints[index]
        tls = self._address.tls
        name = self._address.server_name(host) if tls is not None else None
        _, protocol = await asyncio.get_running_loop().create_connection(
            make, host, port, ssl=tls, server_hostname=name
        )
        return protocol

    def _freed(self, link: AsyncLink) -> None:
        self._idle.append(link)
        self._next()

    def _lost(self, link: AsyncLink, blamed: bool) -> None:
        if link in self._links:
            if blamed:
                self._members.stumble(link.index)
            self._drop(link)

    def _drop(self, link: AsyncLink) -> None:
        self._links.discard(link)
        link.close()
        self._next()

    def _next(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def _later(self, work: Coroutine[Any, Any, Any], reply: Reply | None) -> None:
        """Let the reply be what this comes to; its awaiter can not be cancelled before."""
        task = asyncio.ensure_future(work)
        _errands.add(task)

        def pass_on(done: asyncio.Task[Any]) -> None:
            _errands.discard(done)
            error = OutcomeUnknown("the loop ended before etcd had answered") if done.cancelled() else done.exception()
            if reply is None or reply.done():
                return
            if error is not None:
                reply.set_exception(error)
            else:
                reply.set_result(done.result())

        task.add_done_callback(pass_on)

    async def wait(self, owner: str, timeout: float) -> str | None:
        watch = self._watch_of(owner)
        if watch is None or self._closed:
            await asyncio.sleep(min(timeout, AFTER_A_BROKEN_WATCH))
            return None
        ear = self._parked.pop(watch, None)
        watch.parked = None
        verdict: str | None = None
        try:
            async with asyncio.timeout(timeout):
                if ear is None:
                    ear = await self._listen(watch)
                verdict = await ear.hear() if ear is not None else None
                if verdict is None and not self._closed:
                    await asyncio.sleep(AFTER_A_BROKEN_WATCH)
        except TimeoutError:
            pass  # it goes on next time
        except BaseException:
            self._deafen(ear)
            raise
        if ear is None or ear.broken or verdict == HANDED or self._closed:
            self._deafen(ear)
        else:  # what comes meanwhile is heard at the next wait
            self._parked[watch] = ear
            watch.parked = partial(self._unpark, watch)
        return verdict

    async def _listen(self, watch: Watch) -> AsyncEar | None:
        index = self._members.at
        try:
            ear: AsyncEar = await self._connect(index, partial(AsyncEar, watch, self._members.head(index)))
        except OSError:
            self._members.stumble(index)
            return None
        self._ears.add(ear)
        if self._closed:  # meanwhile
            ear.close()
        return ear

    def _unpark(self, watch: Watch) -> None:
        self._deafen(self._parked.pop(watch, None))

    def _deafen(self, ear: AsyncEar | None) -> None:
        if ear is not None:
            self._ears.discard(ear)
            ear.close()

    def before_fork(self) -> None:
        pass  # the child does not touch what is under way

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        _abandoned.extend([self._links, self._idle, self._ears, self._parked, self._queue])
        self._forget()
        self._begin()

    async def close(self) -> None:
        if self._closed:
            return
        end = time.monotonic() + FAREWELL
        words = self._farewell()
        try:
            for start in range(0, len(words), AT_ONCE):
                await self._carefully(words[start : start + AT_ONCE], left(end))
        except HoldfastError:
            pass  # the leases end by themselves
        finally:  # cancelled or not: no socket stays open
            self._end()

    def _end(self) -> None:
        self._closed = True
        for link in list(self._links):
            self._drop(link)
        for ear in list(self._ears):
            ear.close()


async def _nothing() -> None:
    return None
