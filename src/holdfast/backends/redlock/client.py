"""The client: each request is a round over all nodes, on connections that all its flows share.

What a node does not say by the deadline is neither yes nor no; a call never dials, so it never waits for longer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import Flow
from ..redis.server import Server
from .fanout import Fanout, Tally
from .handshake import Handshake
from .quorum_connections import QuorumConnections


class RedlockClient:
    """The client of one coordinator. `places` are the nodes as users are shown them."""

    def __init__(self, servers: Sequence[Server], places: Sequence[str], handshake: Handshake) -> None:
        self._servers, self._places, self._handshake = servers, places, handshake
        self._begin()

    def _begin(self) -> None:
        self._connections = QuorumConnections(self._servers, self._places, self._handshake)

    def open(self) -> Flow[None]:
        """Connect to as many nodes as can be reached; none is not an error yet."""
        yield from self._connections.open()

    def call(self, request: Fanout, deadline: float) -> Flow[Tally]:
        if request.gone:
            self._connections.turns.forget(request.gone)
        if request.dial:
            return self._look(request, deadline)
        return self._connections.ask(request, deadline)

    def _look(self, request: Fanout, deadline: float) -> Flow[Tally]:
        tally = yield from self._connections.ask(request, deadline)
        self._connections.remember(tally)
        return tally

    def wait(self, owner: str, deadline: float) -> Flow[None]:
        yield from self._connections.turns.wait(owner, deadline)

    def close(self, deadline: float) -> Flow[None]:
        yield from ()
        self._connections.close()

    def after_fork_in_child(self) -> None:
        self._connections.abandon()
        self._begin()
