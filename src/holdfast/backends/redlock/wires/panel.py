"""One connection to each node, used by one caller at a time: send to all, then read until it is decided.

Nodes that answered soon are read first, one after the other, each with a plain blocking read. As soon as one does not
answer, all that are left are polled together until the timeout. A node that is hung so costs a moment once, and
nothing after that while the others are a majority.
"""

from __future__ import annotations

import select
from collections.abc import Callable

from .... import clock
from ...redis.resp import Error
from ..fanout import SENT, Fanout, Said, Tally
from ..programs import frame, frame_with_source
from .link import NodeLink, NotYet

CATCH_UP = 32
"""Replies that are owed before somebody looks for them."""


class Node:
    """One node, as one panel sees it."""

    __slots__ = ("index", "link", "place", "why")

    def __init__(self, index: int, place: str) -> None:
        self.index = index
        self.place = place
        self.link: NodeLink | None = None
        self.why = "not connected yet"

    def lose(self, error: Exception) -> None:
        self.why = str(error) or type(error).__name__
        if self.link is not None:
            self.link.close()
            self.link = None


class Panel:
    """The nodes. `dial` gives a link to one of them, or raises `OSError` (or one of ours)."""

    def __init__(self, places: tuple[str, ...], need: int, dial: Callable[[int], NodeLink]) -> None:
        self._nodes = [Node(index, place) for index, place in enumerate(places)]
        self._order = list(self._nodes)
        self._need = need
        self._dial = dial

    def dial(self) -> None:
        """Connect to those that are missing."""
        for node in self._nodes:
            if node.link is None:
                try:
                    node.link = self._dial(node.index)
                except (OSError, ValueError) as error:
                    node.lose(error)

    def ask(self, request: Fanout, timeout: float) -> Tally:
        nodes = self._order if request.only is None else [self._nodes[request.only]]
        tally = Tally(request.until, len(self._nodes), len(nodes), self._need)
        wire = frame(request)
        asked = []
        for node in nodes:
            link = node.link
            if link is None:
                tally.ailing = True
                tally.miss(node.place, node.why)
                continue
            try:
                if link.owed >= CATCH_UP:
                    link.catch_up()
                link.send(wire)
            except OSError as error:
                self._lose(node, error, tally)
                continue
            if link.forgetful:
                tally.ailing = True
            asked.append(node)
        if request.until is SENT:
            for node in asked:
                node.link.owed += 1  # type: ignore[union-attr]
            return tally
        unread = self._read(request, asked, tally, timeout)
        for node in unread:
            if node.link is not None:
                node.link.owed += 1
        return tally

    def _read(self, request: Fanout, asked: list[Node], tally: Tally, timeout: float) -> list[Node]:
        """Read until the request is answered. Answers with those whose reply is still to come."""
        for at, node in enumerate(asked):
            if tally.done():
                return asked[at:]
            link = node.link
            assert link is not None
            if link.slow:
                return self._poll(request, asked[at:], tally, timeout)
            try:
                reply = link.read()
            except NotYet:
                self._order.remove(node)
                self._order.append(node)
                link.slow = True
                return self._poll(request, asked[at:], tally, timeout)
            except OSError as error:
                self._lose(node, error, tally)
                continue
            if reply.__class__ is Error:
                asked += self._refused(request, node, reply, tally)
            else:
                tally.add(node.index, reply)
        return []

    def _poll(self, request: Fanout, waiting: list[Node], tally: Tally, timeout: float) -> list[Node]:
        """Whoever answers next, until it is decided or time is over."""
        end = clock.now() + timeout
        while waiting and not tally.done():
            poll = select.poll()
            for node in waiting:
                poll.register(node.link, select.POLLIN)  # type: ignore[arg-type]
            left = end - clock.now()
            if left <= 0 or not poll.poll(left * 1000):
                for node in waiting:
                    tally.miss(node.place, f"no answer within {timeout:g} s")
                break
            for node in list(waiting):
                link = node.link
                assert link is not None
                try:
                    reply = link.read_now()
                except NotYet:
                    continue
                except OSError as error:
                    waiting.remove(node)
                    self._lose(node, error, tally)
                    continue
                link.slow = False
                waiting.remove(node)
                if reply.__class__ is Error:
                    waiting += self._refused(request, node, reply, tally)
                elif tally.add(node.index, reply):
                    break
        return waiting

    def _refused(self, request: Fanout, node: Node, error: Error, tally: Tally) -> list[Node]:
        """A node that does not know the program is sent it, and asked again; any other error is no answer."""
        assert node.link is not None
        if error.code != "NOSCRIPT":
            tally.miss(node.place, str(error))
            return []
        try:
            node.link.send(frame_with_source(request))
        except OSError as lost:
            self._lose(node, lost, tally)
            return []
        return [node]

    def _lose(self, node: Node, error: Exception, tally: Tally) -> None:
        node.lose(error)
        tally.ailing = True
        tally.miss(node.place, node.why)

    def remembered(self, said: list[Said]) -> None:
        """After a hello: who remembers is no longer taken for forgetful."""
        for node, word in zip(self._nodes, said, strict=True):
            if node.link is not None and isinstance(word, bytes):
                node.link.forgetful = word[16:17] != b"+"

    def close(self) -> None:
        for node in self._nodes:
            node.lose(ConnectionError("closed"))
