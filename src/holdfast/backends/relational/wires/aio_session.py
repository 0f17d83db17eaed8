"""The asyncio wire of session locks: the rules of `session`, on a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import BackendUnavailable, HoldfastError
from ....model import Claim
from ...queue_backend import Allow, Push, Release, Renew, Survey, Take, Taken
from ..local_queue import LOOK_AGAIN_S, LocalQueue
from .aio_pool import AsyncPool
from .asking import TOO_LONG, Reply, asked, look_away, tidied
from .dial import Deadline
from .pace import TIDY_NAMES, pause_before_look, time_to_tidy
from .ports import AsyncLink, Dialling, Order, SessionCodec
from .session import TRIES


class AsyncSessionWire:
    """Carries out requests on the loop that it was made in. `words` and `rest`: see `Pool`."""

    def __init__(
        self, dialling: Dialling, codec: Callable[[], SessionCodec], words: Sequence[bytes], rest: float
    ) -> None:
        self._translation = dialling.translation
        self._open_timeout = dialling.timeout
        self._make_codec = codec
        self._loop = asyncio.get_running_loop()
        self._make_pool: Callable[[], AsyncPool] = lambda: AsyncPool(
            dialling, words, rest, self._holds_something, self._loop
        )
        self._begin()

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._pool = self._make_pool()
        self._session = self._pool.shared
        self._ask = self._pool.ask
        self._desk: LocalQueue[AsyncLink] = LocalQueue(lambda link: link.closed)
        self._claims: dict[str, Claim] = {}
        self._seen: dict[str, AsyncLink] = {}  # who is seen waiting, through which session
        self._waiters: dict[str, tuple[AsyncLink, Reply]] = {}
        self._bells: dict[str, asyncio.Event] = {}

    async def open(self) -> None:
        await self._session(self._open_timeout)

    def _holds_something(self, link: AsyncLink) -> bool:
        return self._desk.holds_on(link)

    def _asked(self, link: AsyncLink, order: Order) -> Reply:
        """A reply that may be long in coming, or that nobody waits for."""
        return asked(link, order, self._translation, self._loop)

    async def call(self, request: Any, timeout: float) -> Any:
        match request:
            case Take(claims=[claim], queue=queue):
                return [await self._take(claim, queue, timeout)]
            case Renew(claims=claims):
                return await self._renew(claims, timeout)
            case Release(claim=claim):
                return await self._release(claim, timeout)
            case Survey() | Allow():
                deadline = Deadline(timeout)
                return await self._ask(await self._session(timeout), self._codec.write(request), deadline.left)
        raise TypeError(f"not a verb of session locks: {request!r}")

    async def _take(self, claim: Claim, queue: bool, timeout: float) -> Taken:
        name, owner = claim.spec.name, claim.owner
        deadline = Deadline(timeout)
        held = self._desk.holds.get(owner)
        if held is not None and not held.connection.closed:
            return Taken(held.token)
        before = self._desk.enter(name, owner, queue, self._loop.time())
        if before is None:
            return Taken(0)
        self._claims[owner] = claim
        if before or owner in self._waiters:
            await self._show(claim, deadline)
            return Taken(0, LOOK_AGAIN_S, before or 1)
        link = None
        try:
            link = await self._session(timeout)
            token = await self._ask(link, self._codec.take(claim, queue, owner in self._seen), deadline.left)
        except BaseException:
            if link is not None and not link.closed:  # the lock may be there, without its token
                self._asked(link, self._codec.unlock(name)).add_done_callback(look_away)
            self._leave(name, owner)
            raise
        if token:
            self._seen.pop(owner, None)
            self._desk.hold(claim, token, link, self._loop.time())
            self._tidy(link)
            return Taken(token)
        if queue:
            self._seen[owner] = link
        else:
            self._leave(name, owner)
        return Taken(0, LOOK_AGAIN_S, 1)

    async def _show(self, claim: Claim, deadline: Deadline) -> None:
        """Have others see that it waits, for as long as the session lives that says so."""
        link = await self._session(deadline.left)
        if self._seen.get(claim.owner) is not link:
            await self._ask(link, self._codec.queue(claim), deadline.left)
            self._seen[claim.owner] = link

    def _leave(self, name: str, owner: str) -> None:
        self._claims.pop(owner, None)
        self._bells.pop(owner, None)
        heir = self._desk.leave(name, owner)
        if heir is not None and (event := self._bells.get(heir)) is not None:
            event.set()

    async def wait(self, owner: str, timeout: float) -> Push | None:
        claim = self._claims.get(owner)
        if claim is None:
            return None  # it left meanwhile
        name = claim.spec.name
        if not self._desk.first(name, owner):
            event = self._bells.setdefault(owner, asyncio.Event())
            try:
                async with asyncio.timeout(timeout):
                    await event.wait()
            except TimeoutError:
                pass  # the time has come by itself
            return None
        deadline = Deadline(timeout)
        if owner not in self._waiters:
            try:
                link = await self._pool.one_to_wait_on(timeout)
            except BackendUnavailable:
                await asyncio.sleep(min(deadline.left, pause_before_look(TRIES)))  # no other is to be had: look instead
                return None
            self._waiters[owner] = link, self._asked(link, self._codec.wait(claim))
        link, reply = self._waiters[owner]
        await asyncio.wait([reply], timeout=deadline.left)
        if not reply.done():
            return None
        if self._waiters.pop(owner, None) is None:  # released meanwhile: the connection is with whoever did that
            reply.exception()  # seen
            return None
        try:
            token = reply.result()
        except HoldfastError:
            if link.closed:
                return None  # the session ended; the next look stands in line with another
            link.close()
            raise
        self._pool.touch(link)
        if not token:  # a day has passed
            self._pool.put_back(link)
            return None
        self._seen.pop(owner, None)
        self._desk.hold(claim, token, link, self._loop.time())
        return Push(token)

    async def _renew(self, claims: Any, timeout: float) -> list[str]:
        """One question per connection: is the session alive?"""
        held = [self._desk.holds.get(claim.owner) for claim in claims]
        links = {one.connection for one in held if one is not None and not one.connection.closed}
        asking = [self._ask(link, self._codec.alive(), timeout) for link in links]
        await asyncio.gather(*asking, return_exceptions=True)
        for claim, one in zip(claims, held, strict=True):
            if one is not None and not one.connection.closed:
                self._desk.heard(one, self._loop.time())
            elif one is not None:
                self._leave(claim.spec.name, claim.owner)  # who waits behind it here need not wait for its release
        return ["refused" if one is None else "session" if one.connection.closed else "held" for one in held]

    async def _release(self, claim: Claim, timeout: float) -> bool:
        name, owner = claim.spec.name, claim.owner
        deadline = Deadline(timeout)
        held = self._desk.holds.get(owner)
        unlocked = False
        if held is not None and held.connection.look():
            try:
                unlocked = await self._ask(held.connection, self._codec.unlock(name), timeout)
            except BackendUnavailable:
                if not held.connection.closed:
                    raise  # refused: it is still held
            self._pool.put_back(held.connection)
        self._desk.holds.pop(owner, None)
        waiter = self._waiters.pop(owner, None)
        seen = self._seen.pop(owner, None)
        try:
            if waiter is not None:
                await self._give_up(*waiter, name, deadline)
            if seen is not None and not seen.closed:
                await self._ask(seen, self._codec.leave(owner), deadline.left)
        except BackendUnavailable:
            pass  # the session has ended, and is not looked at; or the row goes with it
        finally:
            self._leave(name, owner)
        return unlocked

    async def _give_up(self, link: AsyncLink, reply: Reply, name: str, deadline: Deadline) -> None:
        """Out of the server's line. The lock may have been granted in this very moment: then it is let go of."""
        reply.add_done_callback(look_away)
        try:
            if not reply.done():
                session = await self._session(deadline.left)
                await self._ask(session, self._codec.give_up(link.told_id), deadline.left)
                await asyncio.wait([reply], timeout=deadline.left)
            if not reply.done():
                link.fail(TOO_LONG)
            while not link.closed and await self._ask(link, self._codec.unlock(name), deadline.left):
                pass
            self._pool.put_back(link)
        except BaseException as error:
            link.close()
            if not isinstance(error, HoldfastError):
                raise

    def _tidy(self, link: AsyncLink) -> None:
        if time_to_tidy():
            link.ask(self._codec.tidy(TIDY_NAMES), tidied)

    # Life

    def _links(self) -> set[AsyncLink]:
        waiting = [link for link, _ in self._waiters.values()]
        holding = [held.connection for held in self._desk.holds.values()]
        return {*waiting, *holding, *self._pool.links()}

    def before_fork(self) -> None:
        pass  # nothing is half done between two steps of the loop

    def after_fork_in_parent(self) -> None:
        pass  # see freeze

    def after_fork_in_child(self) -> None:
        for link in self._links():
            link.disown()
        self._begin()

    async def close(self) -> None:
        self._pool.close()
        for _, reply in self._waiters.values():
            reply.add_done_callback(look_away)
        for link in self._links():
            link.fail("the coordinator was closed")
        for event in self._bells.values():
            event.set()
