"""One connection to each node, used by one caller at a time: send to all, then read until it is decided.

1. Nodes that answered soon are read first, one after the other, each with a plain blocking read, and no more of them
   than a majority: the others are sent the request too, and what they answer is read later, many replies at once.
   They are read in the opposite order of sending: when the last has answered, the others most likely have too, and
   the caller is woken once.
2. As soon as one says anything but yes, or nothing, all that are left are polled together until the timeout. A node
   that is hung so costs a moment once, and nothing after that while the others are a majority.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable
from typing import TypeAlias

from .... import clock
from ...redis.resp import Error
from ..fanout import DECIDED, KEPT, SENT, Fanout, Said, Tally
from ..programs import frame, frame_with_source
from .dialling import Dialled
from .link import READ_SIZE, Node, NotYet

CATCH_UP = 32
"""Replies that are owed before somebody looks for them."""
YES = b":1\r\n"


Dial: TypeAlias = Callable[[list[int], int], dict[int, Dialled]]


class Panel:
    """The nodes. `dial` gives links to some of them, or says why not."""

    def __init__(self, places: tuple[str, ...], need: int, dial: Dial, on_lost: Callable[[int], None]) -> None:
        self._nodes = [Node(index, place) for index, place in enumerate(places)]
        self._order = list(self._nodes)
        self._need = need
        self._dial = dial
        self._on_lost = on_lost
        self.suspects: set[int] = set()
        """Nodes that another panel has lost: most likely they have restarted, and this link is dead too."""
        self.missing: list[int] = []
        self.broken: list[int] = []
        """Nodes whose connection ended during the last request."""
        self._lag = 0
        """Replies that nobody waited for, from all but the first of `_order`, and that are not put down to them yet."""
        self._arrange()

    def dial(self, nodes: Iterable[int], patiently: bool = False) -> None:
        """Connect to these, unless they are connected; once there is a majority, only `patiently` for the others."""
        self._settle_lag()
        missing = [index for index in nodes if self._nodes[index].link is None]
        linked = sum(node.link is not None for node in self._nodes)
        if missing:
            got = self._dial(missing, len(missing) if patiently else max(0, self._need - linked))
            for index, link in got.items():
                if isinstance(link, Exception):
                    self._nodes[index].lose(link)
                else:
                    self._nodes[index].link = link
        self._arrange()

    def drop_suspects(self) -> None:
        self._settle_lag()
        while self.suspects:
            self._nodes[self.suspects.pop()].lose(ConnectionError("the node was lost by another connection"))
        self._arrange()

    def _arrange(self) -> None:
        """Prepare for the usual case: the first of the nodes all say yes, soon."""
        self._order.sort(key=_how_late)
        linked = [node for node in self._order if node.link is not None]
        self.missing = [node.index for node in self._nodes if node.link is None]
        self._asked = linked[self._need :] + linked[: self._need]
        self._heard = linked[: self._need][::-1]
        links = [node.link for node in linked if node.link is not None]
        first = links[: self._need]
        self._sends = [*(link.send_some for link in links[self._need :]), *(link.send_some for link in first)]
        self._recvs = [link.recv for link in reversed(first)]
        self._usual = len(first) == self._need and not any(link.owed or link.slow or not link.plain for link in first)
        self._all_well = Tally(DECIDED, len(self._nodes), len(self._nodes), self._need)
        for node in self._order:
            if node.link is None:
                self._all_well.miss(node.place, node.why)
            elif len(first) == self._need and node.link in first:
                self._all_well.add(node.index, 1)
        self._all_well.ailing = len(links) < len(self._nodes) or any(link.forgetful for link in links)

    def _settle_lag(self) -> None:
        """Put down what is owed to those who owe it."""
        linked = [node.link for node in self._order if node.link is not None]
        for link in linked[self._need :]:
            link.owed += self._lag
        self._lag = 0

    def ask(self, request: Fanout, timeout: float) -> Tally:
        data = frame(request)
        if not self._usual or request.only is not None or not (request.until is DECIDED or request.until is KEPT):
            self._settle_lag()
            return self._ask(request, data, timeout)
        at, answer = -1, YES
        try:
            size = len(data)
            for at, send in enumerate(self._sends):  # noqa: B007  it is looked at when a send fails
                if send(data, socket.MSG_DONTWAIT) != size:
                    raise BlockingIOError("it takes nothing more")
        except OSError as error:
            return self._unusual(request, data, timeout, sent=at, failed=error)
        try:
            for at, recv in enumerate(self._recvs):
                answer = recv(READ_SIZE)
                if answer != YES:
                    return self._unusual(request, data, timeout, read=at, answer=answer)
        except OSError:  # not yet, or never: the next read will tell
            return self._unusual(request, data, timeout, read=at)
        self._lag += 1
        if self._lag >= CATCH_UP:
            self._catch_up()
        return self._all_well

    def _unusual(
        self,
        request: Fanout,
        data: bytes,
        timeout: float,
        sent: int | None = None,
        failed: OSError | None = None,
        read: int = 0,
        answer: bytes | None = None,
    ) -> Tally:
        """Go on with what has begun as usual: sent to some, or to all and read from some."""
        self._settle_lag()
        tally = Tally(request.until, len(self._nodes), len(self._nodes), self._need)
        answered = self._heard[:read]
        for node in answered:
            tally.add(node.index, 1)
        if answer is not None and (link := self._heard[read].link) is not None:
            link.feed(answer)
        asked = self._asked if sent is None else self._asked[:sent]
        if failed is not None and sent is not None:
            self._lose(self._asked[sent], failed, tally)
            asked = [*asked, self._asked[sent]]
        return self._ask(request, data, timeout, tally, asked, answered)

    def _ask(
        self,
        request: Fanout,
        data: bytes,
        timeout: float,
        tally: Tally | None = None,
        asked: list[Node] | None = None,
        answered: list[Node] | None = None,
        nodes: list[Node] | None = None,
    ) -> Tally:
        if nodes is None:
            nodes = self._order if request.only is None else [self._nodes[request.only]]
        tally = tally or Tally(request.until, len(self._nodes), len(nodes), self._need)
        sent = list(asked or ())
        for node in nodes:
            if node in sent:
                continue
            if (link := node.link) is None:
                tally.ailing = True
                tally.unsent.add(node.index)
                tally.miss(node.place, node.why)
                continue
            try:
                if link.owed >= CATCH_UP:
                    link.catch_up()
                link.send(data)
            except OSError as error:
                self._lose(node, error, tally)
                continue
            tally.ailing |= link.forgetful
            sent.append(node)
        unread = [node for node in sent if node.link is not None and node not in (answered or ())]
        if request.until is not SENT:
            unread = self._read(request, unread, tally, timeout)
        for node in unread:
            if node.link is not None:
                node.link.owed += 1
        self._arrange()
        return tally

    def ask_again(self, broken: list[int], request: Fanout, tally: Tally, timeout: float) -> Tally:
        """Ask those whose connection ended, and who have a new one now."""
        nodes = [self._nodes[index] for index in broken if self._nodes[index].link is not None]
        for node in nodes:
            tally.ask_again(node.place)
        return self._ask(request, frame(request), timeout, tally, nodes=nodes) if nodes else tally

    def _catch_up(self) -> None:
        """Read what the others have answered meanwhile."""
        self._settle_lag()
        for node in self._order[self._need :]:
            if node.link is not None:
                try:
                    node.link.catch_up()
                except OSError as error:
                    node.lose(error)
        self._arrange()

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
        self.broken.append(node.index)
        self._on_lost(node.index)
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


def _how_late(node: Node) -> tuple[bool, bool, bool]:
    """Who is read first: whoever answered soon, and owes nothing."""
    link = node.link
    return (True, True, True) if link is None else (False, link.slow, link.owed > 0)
