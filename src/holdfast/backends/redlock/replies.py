"""What nodes say, read by one flow for all that wait (`ReceiverRole`): replies to rounds, and whose turn it is.

In which order they are read, and for how long, is said in `quorum_connections` (rules 1 and 2).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NEW_EVENT, NOW, Flow, OpenConnection, Receive, WaitAny
from ..connections.multiplexer import Pending
from ..redis.resp import Error, Reply
from ..redis.server import Server
from .connection import Node, PendingRound
from .connections import NodeConnections
from .fanout import HEARD
from .handshake import Handshake
from .notifications import Turns
from .programs import frame_with_source

SOON_S = 0.008


class NodeReplies(NodeConnections):
    """To be derived from, with what is asked."""

    _first: list[Node]
    _others: list[Node]

    def __init__(self, servers: Sequence[Server], places: Sequence[str], handshake: Handshake) -> None:
        super().__init__(servers, places, handshake)
        self.turns = Turns(self)

    def close(self) -> None:
        super().close()
        self.turns.close()

    def _receive_for(self, pending: Pending, deadline: float) -> Flow[bool]:
        self._receiving = True
        try:
            if not isinstance(pending, PendingRound):
                return (yield from self._receive_any(deadline))
            for node in (*self._first, *self._others):
                if pending.left & node.bit and not node.slow:
                    now: float = yield NOW
                    if not (yield from self._receive(node, min(now + SOON_S, deadline))):
                        break
                    if pending.done:
                        return True
            if self._changed is None:
                self._changed = yield NEW_EVENT
            owing = {node.connection: node for node in self.nodes if node.connection is not None and node.owed}
            ready = yield WaitAny([*owing, self._changed], deadline)
            for source in ready:
                if source in owing:
                    yield from self._receive(owing[source], pending.began)
            return bool(ready)
        finally:
            self._receiving = False

    def _receive_any(self, deadline: float) -> Flow[bool]:
        """On behalf of somebody who waits to be told."""
        if self._changed is None:
            self._changed = yield NEW_EVENT
        connected = {node.connection: node for node in self.nodes if node.connection is not None}
        ready = yield WaitAny([*connected, self._changed], deadline)
        for source in ready or ():
            if source in connected:
                yield from self._receive(connected[source], deadline)
        return bool(ready)

    def _receive(self, node: Node, deadline: float) -> Flow[bool]:
        """Hand out what one node says. False if it says nothing in time."""
        if (connection := node.connection) is None:
            return True
        try:
            if (data := connection.read()) is None:
                data = yield Receive(connection, deadline)
        except OSError as error:
            self._failed(node, connection, error)
            return not isinstance(error, TimeoutError)
        self._take_in(node, connection, data)
        if self._beside:
            yield from self._begin_beside()
        return True

    def _take_in(self, node: Node, connection: OpenConnection, data: bytes) -> None:
        if node.connection is not connection:
            return
        try:
            if not data:
                raise ConnectionError("the node closed the connection")
            for round_, reply in node.take_in(data):
                self._hear(node, round_, reply)
            if node.told:
                self.turns.tell(node)
        except OSError as error:
            self._lose(node, error)
        if node.slow and not node.owed:
            node.slow = False
            self._arrange()

    def _failed(self, node: Node, connection: OpenConnection | None, error: OSError) -> None:
        if isinstance(error, TimeoutError):
            node.slow = True
            self._arrange()
            for round_ in node.owed:
                if not round_.done and self._is_heard(round_):
                    self.finish(round_)
        elif node.connection is connection:
            self._lose(node, error)

    def _hear(self, node: Node, round_: PendingRound, reply: Reply) -> None:
        if isinstance(reply, Error) and reply.code == "NOSCRIPT":
            self._send(node, round_, frame_with_source(round_.request))
            return
        round_.left &= ~node.bit
        if isinstance(reply, int) or isinstance(reply, bytes):  # noqa: SIM101  a union is made anew with each call
            answered = round_.tally.add(node.index, reply)
        else:
            answered = round_.tally.miss(node.place, str(reply))
        if answered or self._is_heard(round_):
            self.finish(round_)

    def _is_heard(self, round_: PendingRound) -> bool:
        """`HEARD`: it is decided, and only nodes that are slow have not answered."""
        if round_.request.until is not HEARD or not round_.tally.decided():
            return False
        return all(node.slow for node in self.nodes if round_.left & node.bit)

    def _catch_up(self, now: float) -> Flow[None]:
        """Read what the others have answered meanwhile (rule 1)."""
        self._receiving = True
        try:
            for node in self._others:
                if node.connection is not None and node.connection.readable():
                    yield from self._receive(node, now)
        finally:
            self._receiving = False
            self._pass_on()
        self._arrange()
