"""Rounds over all nodes, on connections that all flows of a client share; whoever waits reads (`ReceiverRole`).

1. A round is sent to all nodes in one step, and read until it is decided. Nodes that answered soon are read first, and
   no more of them than a majority: what the others answer is read later, many replies at once. They are read in the
   opposite order of sending: when the last has answered, the others most likely have, too.
2. As soon as one does not answer within `SOON_S`, all that are left are waited for together. So a node that hangs costs
   a moment once, and nothing after that while the others are a majority.
3. Rounds that begin while others are under way leave together, a moment later, in one write to each node.
4. A round that begins while nothing is under way, and to which the first of the nodes all say yes, is most of what
   there is: it takes a short way (`_all_agree`), and goes on as any other as soon as anything else happens.
"""

from __future__ import annotations

from ..._core.flow import NOW, Flow, Receive, Sleep
from ..connections.pool import closed_error
from .connection import Node, PendingRound
from .fanout import DECIDED, HEARD, KEPT, SENT, Fanout, Tally
from .programs import frame
from .replies import SOON_S, NodeReplies

CATCH_UP_COUNT = 32
"""Replies that are owed before somebody looks for them."""
YES = b":1\r\n"


class QuorumConnections(NodeReplies):
    """Of one client."""

    _asking_count = 0
    _flushing = False

    def _arrange(self) -> None:
        """Prepare for the usual case: the first of the nodes all say yes, soon (rules 1 and 4)."""
        order = sorted(self.nodes, key=lambda node: (node.connection is None, node.slow, len(node.owed) > 0))
        self._first, self._others = order[: self.need][::-1], order[self.need :]
        self._send_order = [*self._others, *self._first[::-1]]
        asked = [node for node in self._send_order if node.connection is not None]
        self._writes = [(node, node.owed.append, node.write) for node in asked]
        self._bits = sum(node.bit for node in asked)
        self._usual = not any(node.connection is None and node.redial for node in self.nodes) and all(
            node.connection is not None and not node.slow and not node.owed and node.whole for node in self._first
        )
        self._all_yes = PendingRound(Fanout("", (), (), DECIDED), 0.0, len(self.nodes), self.need)
        if self._usual:
            self._ask_absent(self._all_yes, self._bits)
            for node in self._first:
                self._all_yes.tally.add(node.index, 1)
            self._all_yes.tally.ailing |= any(node.forgetful for node in self.nodes)

    def _ask_absent(self, round_: PendingRound, connected: int) -> None:
        for node in self.nodes:
            if not connected & node.bit:
                self._ask_later(node, round_)

    # Asking

    def ask(self, request: Fanout, deadline: float) -> Flow[Tally]:
        """Send a round, and read until it is answered or the time is over."""
        until = request.until
        if self._usual and request.only is None and (until is DECIDED or until is HEARD or until is KEPT):
            return self._ask_usual(request, deadline)
        return self._ask(request, deadline)

    def _ask(self, request: Fanout, deadline: float) -> Flow[Tally]:
        began: float = yield NOW
        if self.over:
            raise closed_error()
        round_ = PendingRound(request, began, len(self.nodes), self.need)
        if request.until is SENT:
            yield from self._send_all(round_)
            return round_.tally
        self._asking_count += 1
        try:
            yield from self._send_all(round_)
        except BaseException:
            self._interrupted(round_)
            raise
        return (yield from self._read(round_, deadline))

    def _read(self, round_: PendingRound, deadline: float) -> Flow[Tally]:
        """Until a round that was sent is answered, or its time is over."""
        try:
            if self._beside:
                yield from self._begin_beside()
            yield from self.until(round_, deadline)
        except BaseException:
            self._interrupted(round_)
            raise
        self._asking_count -= 1
        answered, round_.done = round_.done, True
        if len(self._others[0].owed) >= CATCH_UP_COUNT and not self._receiving:
            yield from self._catch_up(round_.began)
        if not answered:
            self._miss_all(round_, deadline - round_.began)
        if not self._asking_count:
            self._arrange()
        return round_.tally

    def _interrupted(self, round_: PendingRound) -> None:
        """What was sent, or has been read, is not known."""
        self._asking_count -= 1
        round_.done = True
        for node in self.nodes:
            self._lose(node, ConnectionError("a request was interrupted"))
        self._pass_on()

    def _send_all(self, round_: PendingRound) -> Flow[None]:
        request = round_.request
        data = frame(request)
        self._usual = False
        together = self._asking_count > 1
        for node in self._send_order if request.only is None else (self.nodes[request.only],):
            if node.connection is None:
                self._ask_later(node, round_)
            else:
                self._send(node, round_, data, together)
        if together and not self._flushing:
            self._flushing = True
            try:
                yield Sleep(0.0)
            finally:
                self._flushing = False
                for node in self.nodes:
                    if node.unsent and not node.flush():
                        self._send_rest_beside(node)
        if self._beside:
            yield from self._begin_beside()

    def _ask_usual(self, request: Fanout, deadline: float) -> Flow[Tally]:
        """The short way (rule 4)."""
        if not self._usual or self._asking_count or self._receiving or self.over:
            return (yield from self._ask(request, deadline))
        data = frame(request)
        round_ = PendingRound(request, 0.0, len(self.nodes), self.need)
        first, connected, all_yes = self._first, self._bits, self._all_yes
        agreed, said, failure = 0, None, None
        self._asking_count += 1
        self._receiving = True
        try:
            round_.left = connected
            for node, owe, write in self._writes:
                owe(round_)
                if not write(data):
                    self._send_rest_beside(node)
            now: float = yield NOW
            round_.began = now
            for node in first:
                if (connection := node.connection) is None:
                    break
                said = connection.read() if agreed else None
                if said is None:
                    said = yield Receive(connection, min(now + SOON_S, deadline))
                if said != YES or node.connection is not connection:
                    break
                node.owed.popleft()
                agreed += 1
        except OSError as error:
            failure = error
        except BaseException:
            self._receiving = False
            self._interrupted(round_)
            raise
        self._receiving = False
        if agreed == len(first):
            self._asking_count -= 1
            round_.done = True
            if self._line:
                self._pass_on()
            if len(self._others[0].owed) >= CATCH_UP_COUNT and not self._receiving:
                yield from self._catch_up(now)
            return all_yes.tally
        self._join_others(round_, connected, first[:agreed])
        if failure is not None:
            self._failed(node, connection, failure)
        elif connection is not None and said is not None:
            self._take_in(node, connection, said)
        return (yield from self._read(round_, deadline))

    def _join_others(self, round_: PendingRound, connected: int, agreed: list[Node]) -> None:
        for node in agreed:
            round_.left &= ~node.bit
            round_.tally.add(node.index, 1)
        self._ask_absent(round_, connected)
        round_.tally.ailing |= self._all_yes.tally.ailing

    def _miss_all(self, round_: PendingRound, timeout: float) -> None:
        """The time is over: those that have not answered have no word in it."""
        for node in self.nodes:
            if round_.left & node.bit:
                node.slow |= round_.request.until is HEARD
                round_.tally.miss(node.place, f"no answer within {timeout:.2g} s")
            elif round_ in node.waiting:
                round_.tally.miss(node.place, "it does not answer a new connection")

    def remember(self, tally: Tally) -> None:
        """After a hello: who remembers is no longer taken for forgetful."""
        for node, word in zip(self.nodes, tally.said, strict=True):
            if isinstance(word, bytes):
                node.forgetful = word[16:17] != b"+"
        self._arrange()
