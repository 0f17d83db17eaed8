"""The client: one session for each ttl in use, made when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from weakref import WeakKeyDictionary

from ..._core.flow import NEW_EVENT, NOW, RANDOM, Endpoint, Flow, WaitEvent, WakeEvent
from ...errors import HoldfastError, OutcomeUnknown
from ..connections.batching import Batching
from ..connections.gather import gather
from ..connections.pool import closed_error
from .connection import SessionConnection
from .connector import ServerRotation
from .keepalive import ask, attend
from .ops import Answer, Op, Watches
from .requests import Batch
from .session import Credentials
from .timing import shared
from .watch_registry import repeatable

TOGETHER_COUNT = 200
ANY_TTL_S = 10.0
"""Whose session carries what is asked on behalf of nobody, if there is none yet."""


class ZooKeeperClient:
    """Carries out batches of operations."""

    def __init__(
        self, endpoints: Sequence[Endpoint], shown: str, credentials: Credentials, least: float, root: str, acl: bytes
    ) -> None:
        self._endpoints, self._shown, self._credentials = endpoints, shown, credentials
        self._least, self._root, self._acl = least, root, acl
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._links: dict[float, SessionConnection] = {}
        self._waits: dict[str, SessionConnection] = {}
        self._leaving: WeakKeyDictionary[SessionConnection, Batching[Op, list[Answer] | None]] = WeakKeyDictionary()
        """Who gives up a place goes with others who do."""
        self._idle: list[WakeEvent] = []
        """Of waits for what can never come: they end with the client."""

    def call(self, request: Batch, deadline: float) -> Flow[list[Answer] | None]:
        state = request.state
        if state is None:
            return (yield from self._call_for_nobody(request, deadline))
        owner, mine = state.claim.owner, state.link
        if not isinstance(mine, SessionConnection):
            link = self._links.get(state.claim.spec.ttl)
            if link is None or link.over or link.closed or self._closed:
                link = yield from self._link(state.claim.spec.ttl)
            return (yield from link.call(request.ops, deadline, owner, (state, *request.companions)))
        if request.ops[-1].__class__ is Watches:
            self._waits[owner] = mine
        elif request.leaving and self._waits.pop(owner, None) is not None:
            mine.forget(owner)
        if mine.over or mine.closed:
            if self._closed:
                raise closed_error()
            return None
        if not mine.kept:
            yield from mine.have_it_kept()
        if request.leaving and not state.granted and len(request.ops) == 1:  # many may give up at a time
            return (yield from self._departures(mine).call(request.ops[0], deadline))
        return (yield from mine.call(request.ops, deadline, owner, request.companions))  # which may be new on it

    def _departures(self, link: SessionConnection) -> Batching[Op, list[Answer] | None]:
        found = self._leaving.get(link)
        if found is None:
            found = self._leaving[link] = Batching(partial(_call_together, link), TOGETHER_COUNT)
        return found

    def _call_for_nobody(self, request: Batch, deadline: float) -> Flow[list[Answer] | None]:
        link = request.link
        if not isinstance(link, SessionConnection):
            return (yield from self._call_on_any(request, deadline))
        if link.over:
            return None
        try:
            answers = yield from ask(link, request.ops, deadline, waits=True)
        except HoldfastError:
            yield from link.have_it_kept()
            raise
        now: float = yield NOW
        if not link.kept and link.claims.next <= now < deadline:  # see `keepalive`, rule 2
            yield from attend(link, now, deadline)
        return answers

    def _call_on_any(self, request: Batch, deadline: float) -> Flow[list[Answer]]:
        """The session may end meanwhile: what changes nothing is asked again on another."""
        now: float = yield NOW
        while now < deadline:
            link = yield from self._any()
            answers = yield from link.call(request.ops, deadline)
            if answers is not None:
                return answers
            if not repeatable(request.ops):
                break
            now = yield NOW
        raise OutcomeUnknown("the session with ZooKeeper ended while a request was in flight; try again")

    def _link(self, ttl: float) -> Flow[SessionConnection]:
        now: float = yield NOW
        chance: float = yield RANDOM
        if self._closed:
            raise closed_error()
        key = shared(ttl, self._links, len(self._links))
        link = self._links.get(key)
        if link is None or link.over or link.closed:
            servers = ServerRotation(self._endpoints, self._shown, int(chance * len(self._endpoints)))
            link = SessionConnection(servers, self._credentials, key, self._least, self._root, self._acl, now)
            self._links[key] = link
        return link

    def _any(self) -> Flow[SessionConnection]:
        if self._closed:
            raise closed_error()
        for link in self._links.values():
            if link.up is not None and not link.over:
                return link
        return (yield from self._link(max(ANY_TTL_S, self._least)))

    def wait(self, owner: str, deadline: float) -> Flow[list[str] | None]:
        if self._closed:
            raise closed_error()
        if (link := self._waits.get(owner)) is not None:
            return (yield from link.wait(owner, deadline))
        event: WakeEvent = yield NEW_EVENT
        self._idle.append(event)
        try:
            now: float = yield NOW
            if not self._is_closed():
                yield WaitEvent(event, max(0.0, deadline - now))
        finally:
            self._idle.remove(event)
        return None

    def _is_closed(self) -> bool:
        return self._closed

    def close(self, deadline: float) -> Flow[None]:
        self._closed = True
        for event in self._idle:
            event.set()
        links = list(self._links.values())
        if len(links) == 1:
            yield from links[0].close(deadline)
        else:
            yield from gather([link.close(deadline) for link in links], deadline)

    def after_fork_in_child(self) -> None:
        for link in self._links.values():
            link.abandon()
        self._begin()


def _call_together(link: SessionConnection, ops: Sequence[Op], deadline: float) -> Flow[list[list[Answer] | None]]:
    """Each is answered for itself; None if the session has ended."""
    answers = yield from link.call(ops, deadline)
    return [None] * len(ops) if answers is None else [[answer] for answer in answers]
