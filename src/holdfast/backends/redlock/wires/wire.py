"""The blocking wire: each request on a panel of its own; there are as many as requests at the same moment."""

from __future__ import annotations

import os
from typing import Any

from .... import clock
from ....errors import BackendUnavailable, Misconfigured
from ...redis.wires.dialling import Dialler
from ..fanout import Fanout, Tally
from .greeting import Manners, greet
from .link import NodeLink, NotYet
from .panel import Panel

IDLE = 16
"""Panels that are kept for the next request."""
RETRY_AFTER = 0.5
"""A node that could not be reached is not tried again by anybody for so long, in seconds."""
GREETING_TIMEOUT = 1.0


class RedlockWire:
    """Carries out requests on the caller's thread."""

    def __init__(self, diallers: tuple[Dialler, ...], places: tuple[str, ...], manners: Manners) -> None:
        self._diallers = diallers
        self._places = places
        self._manners = manners
        self._begin()

    def _begin(self) -> None:
        self._idle: list[Panel] = []
        self._closed_until = [0.0] * len(self._places)
        self._why: list[Exception] = [BackendUnavailable("not tried")] * len(self._places)
        self._absent: set[int] = set()
        """Nodes that were not reached when it was last tried: only who looks after them tries again."""
        self._closed = False

    def call(self, request: Fanout, timeout: float) -> Tally:
        try:
            panel = self._idle.pop()
        except IndexError:
            panel = self._open()
        try:
            if panel.suspects:
                panel.drop_suspects()
            if request.dial:
                panel.dial(range(len(self._places)))
            elif panel.missing and not self._absent.issuperset(panel.missing):
                panel.dial([node for node in panel.missing if node not in self._absent])
            tally = panel.ask(request, timeout)
            if request.dial:
                panel.remembered(tally.said)
        except BaseException:  # interrupted: what is owed is not known
            panel.close()
            raise
        if self._closed or len(self._idle) >= IDLE:
            panel.close()
        else:
            self._idle.append(panel)
        return tally

    def _open(self) -> Panel:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed")
        panel = Panel(self._places, len(self._places) // 2 + 1, self._dial, self._lost)
        panel.dial(range(len(self._places)))
        return panel

    def _lost(self, node: int) -> None:
        """A node did not answer on a connection that it had: nobody counts on it until it was reached again."""
        self._absent.add(node)
        for panel in list(self._idle):
            panel.suspects.add(node)

    def _dial(self, node: int) -> NodeLink:
        if clock.now() < self._closed_until[node]:
            raise BackendUnavailable(str(self._why[node]))
        try:
            link = NodeLink(self._diallers[node].dial(GREETING_TIMEOUT))
            try:
                self._greet(link)
            except BaseException:
                link.close()
                raise
            self._absent.discard(node)
            return link
        except (OSError, Misconfigured) as error:
            self._absent.add(node)
            self._closed_until[node] = clock.now() + RETRY_AFTER
            self._why[node] = error
            raise

    def _greet(self, link: NodeLink) -> None:
        greeting = greet(self._manners, os.urandom(8).hex())
        frames = next(greeting)
        while True:
            link.send(b"".join(frames))
            replies = [_patiently(link) for _ in frames]
            try:
                frames = greeting.send(replies)
            except StopIteration:
                return

    def wait(self, owner: str, timeout: float) -> None:
        raise NotImplementedError("nothing is pushed on a quorum")

    def freeze(self) -> None:
        pass  # requests under way are on panels that the child does not touch

    def thaw(self) -> None:
        pass

    def forked(self) -> None:
        self.close()
        self._begin()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _patiently(link: NodeLink) -> Any:
    end = clock.now() + GREETING_TIMEOUT
    while True:
        try:
            return link.read()
        except NotYet:
            if clock.now() >= end:
                raise TimeoutError(f"it did not answer within {GREETING_TIMEOUT:g} s") from None
