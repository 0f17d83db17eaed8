"""The asyncio wire: one link for each ttl in use. The rules are those of the blocking wire."""

from __future__ import annotations

import asyncio
from typing import Any

from ...queue_backend import closed
from ..address import Address
from ..ops import Watches
from ..requests import Batch
from .aio_link import AsyncLink
from .dialling import Hosts
from .pace import shared
from .wire import ANY_TTL

_abandoned: list[Any] = []
"""What a forked child has of its parent's: neither used nor closed, for its transports are bound to a loop."""


class AsyncZooKeeperWire:
    """Carries out requests in the caller's task."""

    def __init__(self, address: Address, least: float, root: str, acl: bytes, timeout: float) -> None:
        self._address, self._least, self._root, self._acl = address, least, root, acl
        self._timeout = timeout
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._links: dict[float, AsyncLink] = {}
        self._waits: dict[str, AsyncLink] = {}
        self._ending = asyncio.Event()

    async def call(self, request: Batch, timeout: float) -> Any:
        place = request.place
        if place is None:
            link = request.link if isinstance(request.link, AsyncLink) else self._any()
            if link.over:
                return None
            return await link.call(request.ops, timeout)
        owner = place.claim.owner
        mine = place.link
        if not isinstance(mine, AsyncLink):
            link = self._link(place.claim.spec.ttl)
            return await link.call(request.ops, timeout, owner, (place, *request.companions))
        if request.ops[-1].__class__ is Watches:
            self._waits[owner] = mine
        elif request.leaving and self._waits.pop(owner, None) is not None:
            mine.forget(owner)
        if mine.over or mine.closed:
            if self._closed:
                raise closed()
            return None
        return await mine.call(request.ops, timeout, owner)

    def _link(self, ttl: float) -> AsyncLink:
        if self._closed:
            raise closed()
        key = shared(ttl, self._links, len(self._links))
        link = self._links.get(key)
        if link is None or link.over:
            link = self._links[key] = AsyncLink(Hosts(self._address), key, self._least, self._root, self._acl)
        return link

    def _any(self) -> AsyncLink:
        if self._closed:
            raise closed()
        for link in self._links.values():
            if link.is_up:
                return link
        return self._link(max(ANY_TTL, self._least))

    async def wait(self, owner: str, timeout: float) -> Any:
        if self._closed:
            raise closed()
        link = self._waits.get(owner)
        if link is not None:
            return await link.wait(owner, timeout)
        try:
            async with asyncio.timeout(timeout):
                await self._ending.wait()
        except TimeoutError:
            pass  # as it should be
        return None

    def before_fork(self) -> None:
        pass  # the child does not touch what is under way

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        _abandoned.extend([self._links, self._ending])
        self._begin()

    async def close(self) -> None:
        self._closed = True
        self._ending.set()
        await asyncio.gather(*(link.close(self._timeout) for link in self._links.values()))
