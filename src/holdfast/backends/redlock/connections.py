"""The connections to all nodes of one client, one to each: made, made again, and lost.

1. A connection that has ended says nothing of its node: it is made again beside the rounds that need it, which ask once
   more what was not answered (every program may be carried out twice).
2. A node that cannot be dialled is left to whoever looks after it (`Fanout.dial`), and not tried again for a while. So
   is one that does not read what it is sent, or owes many replies, the first of them for long.
3. What is to run beside is begun by the flow that found it necessary, at the end of its step (`_begin_beside`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NEW_EVENT, NOW, Flow, OpenConnection, Send, Spawn, WaitEvent, WakeEvent
from ...errors import Misconfigured
from ..connections.multiplexer import ReceiverRole
from ..redis.server import Server
from .connection import Node, PendingRound
from .connector import DIAL_TIMEOUT_S, NodeConnector
from .handshake import Handshake
from .programs import frame

REDIAL_PAUSE_S = 0.5
GRACE_S = 0.05
"""For how long other nodes are waited for on opening, once there is a majority."""
MOST_OWED_COUNT = 2000
LATE_S = 1.0
"""A reply that is due for so long is late."""


class NodeConnections(ReceiverRole):
    """To be derived from, with what is done when the nodes that can be asked are others (`_arrange`)."""

    def __init__(self, servers: Sequence[Server], places: Sequence[str], handshake: Handshake) -> None:
        super().__init__()
        self.nodes = [Node(index, *each) for index, each in enumerate(zip(servers, places, strict=True))]
        self.need = len(self.nodes) // 2 + 1
        self._connector = NodeConnector(handshake)
        self._beside: list[tuple[Node, Flow[None]]] = []
        self._changed: WakeEvent | None = None
        """Tells whoever receives that there are other connections, or fewer."""
        self._arrange()

    def _arrange(self) -> None:
        raise NotImplementedError

    def open(self) -> Flow[None]:
        """Dial all, and wait for a majority, and a moment for the others."""
        self._changed = yield NEW_EVENT
        now: float = yield NOW
        end = now + DIAL_TIMEOUT_S
        for node in self.nodes:
            self._dial_beside(node)
        yield from self._begin_beside()
        while now < end and any(node.dialled for node in self.nodes):
            if sum(node.connection is not None for node in self.nodes) >= self.need:
                end = min(end, now + GRACE_S)
            yield WaitEvent(self._changed, end - now)
            now = yield NOW

    def close(self) -> None:
        """Whoever waits is told."""
        for node in self.nodes:
            node.flush()
        self.over = True
        for node in self.nodes:
            self._give_up(node, ConnectionError("closed"))
        self._connector.close()
        self._changed = None  # a thread's event has files: they are closed with it

    def abandon(self) -> None:
        """In a forked child."""
        self._connector.abandon()

    def _tell(self) -> None:
        self._arrange()
        if self._changed is not None:
            self._changed.set()

    def _begin_beside(self) -> Flow[None]:
        while self._beside:
            node, flow = self._beside.pop()
            if (yield Spawn(flow)) is False:
                node.dialled = node.sends_rest = False
                self._give_up(node, OSError("no thread could be started for it"))

    # Sending

    def _send(self, node: Node, round_: PendingRound, data: bytes, together: bool = False) -> None:
        """To a node that is connected; with `together`, at the next flush."""
        owed = node.owed
        if len(owed) > MOST_OWED_COUNT and self._is_late(node, round_.began):
            self._give_up(node, TimeoutError(f"it owes {len(owed)} replies"))
            self._ask_later(node, round_)
            return
        owed.append(round_)
        round_.left |= node.bit
        if node.forgetful:
            round_.tally.ailing = True
        if together or node.unsent:
            node.unsent.append(data)
        elif not node.write(data):
            self._send_rest_beside(node)

    def _is_late(self, node: Node, now: float) -> bool:
        """It has been sent all that it owes, for long, and nothing that it has said waits to be read."""
        connection = node.connection
        sent = connection is not None and not node.unsent and not connection.readable()
        return sent and now - node.owed[0].began > LATE_S

    def _send_rest_beside(self, node: Node) -> None:
        """Some of it did not fit."""
        node.behind = True
        if not node.sends_rest and node.connection is not None:
            node.sends_rest = True
            self._beside.append((node, self._send_rest(node, node.connection)))

    def _send_rest(self, node: Node, connection: OpenConnection) -> Flow[None]:
        now: float = yield NOW
        try:
            while node.behind:
                node.behind = False
                yield Send(connection, b"", now + LATE_S)
        except OSError as error:
            if node.connection is connection:
                node.redial &= not isinstance(error, TimeoutError)
                self._lose(node, error)
        finally:
            node.sends_rest = False
        yield from self._begin_beside()

    def _ask_later(self, node: Node, round_: PendingRound) -> None:
        """A node that is not connected is asked as soon as it is, if that can be hoped for."""
        round_.tally.ailing = True
        round_.tally.unsent.add(node.index)
        if not node.redial and (not round_.request.dial or round_.began < node.closed_until):
            self._miss(node, round_)
        else:
            node.waiting.append(round_)
            self._dial_beside(node)

    # Losing and dialling

    def _miss(self, node: Node, round_: PendingRound) -> None:
        round_.tally.ailing = True
        if round_.tally.miss(node.place, node.why):
            self.finish(round_)

    def _give_up(self, node: Node, error: Exception) -> None:
        """It is left to whoever looks after it (rule 2)."""
        node.redial = False
        self._lose(node, error)

    def _lose(self, node: Node, error: Exception) -> None:
        """What was asked on its connection is asked once more, or has no answer (rule 1)."""
        for round_ in node.lose(error):
            round_.left &= ~node.bit
            if round_.done:
                continue
            if not node.redial or round_.again & node.bit:
                self._miss(node, round_)
            else:
                round_.again |= node.bit
                node.waiting.append(round_)
        if node.waiting:
            self._dial_beside(node)
        self._tell()

    def _dial_beside(self, node: Node) -> None:
        if not node.dialled and not self.over:
            node.dialled = True
            self._beside.append((node, self._dial(node)))

    def _dial(self, node: Node) -> Flow[None]:
        began: float = yield NOW
        try:
            link = yield from self._connector.connect(node.server, began)
        except (OSError, Misconfigured) as error:
            node.closed_until = REDIAL_PAUSE_S + (yield NOW)
            self._give_up(node, error)
        else:
            node.connected(link)
            waiting, node.waiting = node.waiting, []
            for round_ in waiting:
                if not round_.done:
                    round_.tally.unsent.discard(node.index)
                    self._send(node, round_, frame(round_.request))
        finally:
            node.dialled = False
            self._tell()
        yield from self._begin_beside()
