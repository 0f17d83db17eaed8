"""The asyncio wire of session locks: the rules of `session`, on a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ....errors import BackendUnavailable
from ....model import Claim
from ...line import Allow, Push, Release, Renew, Survey, Take, Taken, closed
from ..codec import Codec, Order
from ..greeting import Refused
from ..programs import SQL
from ..session.desk import LOOK_AGAIN, Desk, Held
from .aio import Reply
from .aio_link import AsyncLink
from .blocking import TIDY_EVERY, TIDY_NAMES, pause_before_look
from .dialling import Dialling
from .link import Silence
from .session import MOST_IDLE, TRIES
from .translation import translated, unknown


class AsyncSessionWire:
    """Carries out requests on the loop that it was made in."""

    def __init__(self, dialling: Dialling, codec: Callable[[], Codec]) -> None:
        self._dialling = dialling
        self._make_codec = codec
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._dialling_up = asyncio.Lock()
        self._shared: AsyncLink | None = None
        self._desk: Desk[AsyncLink] = Desk(lambda link: link.closed)
        self._claims: dict[str, Claim] = {}
        self._seen: dict[str, AsyncLink] = {}  # who is seen waiting, through which session
        self._waiters: dict[str, tuple[AsyncLink, asyncio.Future[Any]]] = {}
        self._bells: dict[str, asyncio.Event] = {}
        self._idle: list[AsyncLink] = []
        self._used = 0
        self._tidied = ""

    async def open(self) -> None:
        await self._session()

    async def _dial(self) -> AsyncLink:
        self._be_open()
        link = await self._dialling.dial_async()
        try:
            await link.say(SQL["session_bounds"].text, self._dialling.timeout)
            self._be_open()  # closed while it was dialled, nobody else would end it
        except BaseException as error:
            link.close()
            raise unknown(error) if isinstance(error, Silence | Refused) else error from error
        link.open()
        return link

    def _be_open(self) -> None:
        if self._closed:
            raise closed()

    async def _session(self) -> AsyncLink:
        async with self._dialling_up:
            if self._shared is None or self._shared.closed:
                self._shared = await self._dial()
            return self._shared

    async def call(self, request: Any, timeout: float) -> Any:
        match request:
            case Take(claims=[claim], queue=queue):
                return [await self._take(claim, queue, timeout)]
            case Renew(claims=claims):
                return await self._renew(claims, timeout)
            case Release(claim=claim):
                return await self._release(claim, timeout)
            case Survey():
                return await self._ask(await self._session(), self._codec.session_survey(request), timeout)
            case Allow():
                return await self._ask(await self._session(), self._codec.write(request), timeout)
        raise TypeError(f"not a verb of session locks: {request!r}")

    async def _ask(self, link: AsyncLink, order: Order, timeout: float) -> Any:
        if link.closed:
            raise unknown("the session has ended")
        reply = self._asked(link, order)
        timer = self._loop.call_later(timeout, link.fail, "it took too long")
        try:
            return await reply
        finally:
            timer.cancel()

    def _asked(self, link: AsyncLink, order: Order) -> Reply:
        reply = Reply(loop=self._loop)

        def answer(value: Any, error: BaseException | None) -> None:
            if error is None:
                reply.set_result(value)
            else:
                known = translated(error) if isinstance(error, Refused) else unknown(error)
                known.__cause__ = error
                reply.set_exception(known)

        link.ask(order, answer)
        return reply

    async def _take(self, claim: Claim, queue: bool, timeout: float) -> Taken:
        name, owner = claim.ask.name, claim.owner
        held = self._desk.holds.get(owner)
        if held is not None and not held.link.closed:
            return Taken(held.token)
        before = self._desk.enter(name, owner, queue)
        if before is None:
            return Taken(0)
        self._claims[owner] = claim
        if before or owner in self._waiters:
            await self._show(claim, timeout)
            return Taken(0, LOOK_AGAIN, before or 1)
        link = None
        try:
            link = await self._session()
            token = await self._ask(link, self._codec.session_try(claim, queue, owner in self._seen), timeout)
        except BaseException:
            if link is not None and not link.closed:  # the lock may be there, without its token
                self._asked(link, self._codec.session_unlock(name)).add_done_callback(_seen)
            self._leave(name, owner)
            raise
        if token:
            self._seen.pop(owner, None)
            self._desk.holds[owner] = Held(name, token, link)
            self._tidy(link)
            return Taken(token)
        if queue:
            self._seen[owner] = link
        else:
            self._leave(name, owner)
        return Taken(0, LOOK_AGAIN, 1)

    async def _show(self, claim: Claim, timeout: float) -> None:
        """Have others see that it waits, for as long as the session lives that says so."""
        link = await self._session()
        if self._seen.get(claim.owner) is not link:
            await self._ask(link, self._codec.session_queue(claim), timeout)
            self._seen[claim.owner] = link

    def _leave(self, name: str, owner: str) -> None:
        self._claims.pop(owner, None)
        self._bells.pop(owner, None)
        heir = self._desk.leave(name, owner)
        if heir is not None and (bell := self._bells.get(heir)) is not None:
            bell.set()

    async def wait(self, owner: str, timeout: float) -> Push | None:
        claim = self._claims.get(owner)
        if claim is None:
            return None  # it left meanwhile
        name = claim.ask.name
        if not self._desk.first(name, owner):
            bell = self._bells.setdefault(owner, asyncio.Event())
            try:
                async with asyncio.timeout(timeout):
                    await bell.wait()
            except TimeoutError:
                pass  # the time has come by itself
            return None
        if owner not in self._waiters:
            try:
                link = self._idle.pop() if self._idle else await self._dial()
            except BackendUnavailable:
                await asyncio.sleep(min(timeout, pause_before_look(TRIES)))  # no other is to be had: look instead
                return None
            self._waiters[owner] = link, self._asked(link, self._codec.session_wait(claim))
        link, reply = self._waiters[owner]
        await asyncio.wait([reply], timeout=timeout)
        if not reply.done():
            return None
        del self._waiters[owner]
        try:
            token = reply.result()
        except BackendUnavailable:
            link.close()
            return None  # the session ended; the next look stands in line with another
        self._seen.pop(owner, None)
        self._desk.holds[owner] = Held(name, token, link)
        return Push(token)

    async def _renew(self, claims: Any, timeout: float) -> list[str]:
        """One question per connection: is the session alive?"""
        held = [self._desk.holds.get(claim.owner) for claim in claims]
        links = {one.link for one in held if one is not None and not one.link.closed}
        asking = [self._ask(link, self._codec.session_alive(), timeout) for link in links]
        await asyncio.gather(*asking, return_exceptions=True)
        for claim, one in zip(claims, held, strict=True):
            if one is not None and one.link.closed:
                self._leave(one.name, claim.owner)  # who waits behind it here need not wait for its release
        return ["refused" if one is None else "session" if one.link.closed else "held" for one in held]

    async def _release(self, claim: Claim, timeout: float) -> bool:
        name, owner = claim.ask.name, claim.owner
        held = self._desk.holds.pop(owner, None)
        waiter = self._waiters.pop(owner, None)
        seen = self._seen.pop(owner, None)
        try:
            if waiter is not None:
                await self._give_up(*waiter, name, timeout)
            if seen is not None and not seen.closed:
                await self._ask(seen, self._codec.session_leave(owner), timeout)
            if held is None or held.link.closed:
                return False
            unlocked: bool = await self._ask(held.link, self._codec.session_unlock(name), timeout)
            self._put_back(held.link)
            return unlocked
        except BackendUnavailable:
            return False  # the session ended, and the lock with it
        finally:
            self._leave(name, owner)

    async def _give_up(self, link: AsyncLink, reply: asyncio.Future[Any], name: str, timeout: float) -> None:
        """Out of the server's line. The lock may have been granted in this very moment: then it is let go of."""
        if not reply.done():
            await link.cancel()
            await asyncio.wait([reply], timeout=timeout)
        if not reply.done():
            link.fail("it took too long")
        reply.exception()  # cancelled before the lock was granted, or after
        while not link.closed and await self._ask(link, self._codec.session_unlock(name), timeout):
            pass
        self._put_back(link)

    def _put_back(self, link: AsyncLink) -> None:
        if link is self._shared or link.closed:
            return
        if len(self._idle) < MOST_IDLE and not self._closed:
            self._idle.append(link)
        else:
            link.close()

    def _tidy(self, link: AsyncLink) -> None:
        self._used += 1
        if not self._used % TIDY_EVERY:
            link.ask(self._codec.tidy(self._tidied, TIDY_NAMES), self._note_tidied)

    def _note_tidied(self, name: Any, error: BaseException | None) -> None:
        self._tidied = name if error is None else ""

    # Life

    def _links(self) -> set[AsyncLink]:
        waiting = [link for link, _ in self._waiters.values()]
        holding = [held.link for held in self._desk.holds.values()]
        return {*waiting, *holding, *self._idle, *([self._shared] if self._shared is not None else [])}

    def freeze(self) -> None:
        pass  # nothing is half done between two steps of the loop

    def thaw(self) -> None:
        pass  # see freeze

    def forked(self) -> None:
        for link in self._links():
            link.disown()
        self._begin()

    async def close(self) -> None:
        self._closed = True
        for _, reply in self._waiters.values():
            reply.add_done_callback(_seen)
        for link in self._links():
            link.fail("the coordinator was closed")
        for bell in self._bells.values():
            bell.set()


def _seen(reply: asyncio.Future[Any]) -> None:
    """Whatever became of it, nobody asks any more."""
    reply.exception()
