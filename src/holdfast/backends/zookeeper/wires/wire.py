"""The blocking wire: one link for each ttl in use, made when it is first needed."""

from __future__ import annotations

import threading
from typing import Any

from ....clock import now as clock
from ...queue_backend import closed
from ..address import Address
from ..ops import Watches
from ..requests import Batch
from .dialling import Hosts
from .keeping import attend, close_link, have_kept
from .link import Link
from .pace import shared

ANY_TTL = 10.0
"""Whose session carries what is asked on behalf of nobody, if there is none yet."""


class ZooKeeperWire:
    """Carries out requests on the caller's thread."""

    def __init__(self, address: Address, least: float, root: str, acl: bytes, timeout: float) -> None:
        self._address, self._least, self._root, self._acl = address, least, root, acl
        self._timeout = timeout
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._links: dict[float, Link] = {}
        self._waits: dict[str, Link] = {}
        self._opening = threading.Lock()
        self._ending = threading.Event()

    def call(self, request: Batch, timeout: float) -> Any:
        place = request.place
        if place is None:
            if not isinstance(request.link, Link):
                return self._any().call(request.ops, timeout)
            link, end = request.link, clock() + timeout
            answers = None if link.over else link.call(request.ops, timeout)
            if not link.kept and link.book.next <= (now := clock()) < end:
                attend(link, now, end - now)
            return answers
        owner = place.claim.owner
        mine = place.link
        if isinstance(mine, Link):
            if request.ops[-1].__class__ is Watches:
                self._waits[owner] = mine
            elif request.leaving and self._waits.pop(owner, None) is not None:
                mine.forget(owner)
            if mine.over or mine.closed:
                return self._ended(mine)
            if not mine.kept:
                mine.have_it_kept()
            return mine.call(request.ops, timeout, owner)
        link = self._link(place.claim.spec.ttl)
        return link.call(request.ops, timeout, owner, (place, *request.companions))

    def _ended(self, link: Link) -> None:
        if self._closed:
            raise closed()

    def _link(self, ttl: float) -> Link:
        with self._opening:
            if self._closed:
                raise closed()
            key = shared(ttl, self._links, len(self._links))
            link = self._links.get(key)
            if link is None or link.over:
                link = self._links[key] = Link(Hosts(self._address), key, self._least, self._acl)
                have_kept(link, self._root)
            return link

    def _any(self) -> Link:
        if self._closed:
            raise closed()
        for link in list(self._links.values()):
            if link.up.is_set() and not link.over:
                return link
        return self._link(max(ANY_TTL, self._least))

    def wait(self, owner: str, timeout: float) -> Any:
        if self._closed:
            raise closed()
        link = self._waits.get(owner)
        if link is None:
            self._ending.wait(timeout)
            return None
        return link.wait(owner, timeout)

    def before_fork(self) -> None:
        pass  # the child does not touch what is under way

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        for link in self._links.values():
            link.disown()
        self._begin()

    def close(self) -> None:
        self._closed = True
        self._ending.set()
        with self._opening:
            links = list(self._links.values())
        end = clock() + self._timeout  # for all of them: a server that does not answer is waited for once
        for link in links:
            close_link(link, max(0.0, end - clock()))
