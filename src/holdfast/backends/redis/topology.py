"""Which node of a cluster has which slot.

1. It is learned from any node that answers: one after the other is asked, and one that hangs costs a moment. Nodes
   that requests could not reach are asked last.
2. It is learned anew when a node could not be reached, did not answer, or sent a request elsewhere: that is how a
   fail-over is noticed. One look at a time, beside the requests, and not one after the other without a pause.
3. Whoever has to know waits for the look under way, for as long as its request may take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NOW, Flow
from ...errors import BackendUnavailable
from ..connections.gather import first
from ..connections.single_flight import SingleFlight
from .connection import RedisConnection
from .connector import LEAST_DIAL_S, STAGGER_S, Connector
from .error_mapping import refused, translated
from .resp import Error, command
from .server import Server
from .slots import Address, SlotMap

LOOK_AGAIN_S = 0.2
"""Between two looks that nobody waits for."""


class Topology:
    """The nodes of one cluster."""

    def __init__(self, seeds: Sequence[Server], connector: Connector, request_timeout: float) -> None:
        self._seeds = seeds
        self._connector = connector
        self._slots = SlotMap()
        self._look = SingleFlight(self._learn, max(request_timeout, LEAST_DIAL_S))
        self._looked_at = float("-inf")
        self._suspects: set[Address] = set()
        self.on_suspect: Callable[[Address], None] = lambda node: None
        """Called with a node that could not be reached."""
        self.listening_at: Address | None = None
        """The node to which `connect_anywhere` has connected last."""

    def node(self, key: bytes) -> Address | None:
        return self._slots.node(key)

    def nodes(self) -> list[Address]:
        return self._slots.nodes()

    def need(self, key: bytes) -> Address:
        """Who has this key, after a look."""
        if (node := self._slots.node(key)) is None:
            raise BackendUnavailable("the cluster has no node for some keys at this moment; see CLUSTER INFO")
        return node

    def moved(self, slot: int, node: Address) -> Flow[None]:
        """A node said so: most likely more has changed."""
        self._slots.moved(slot, node)
        yield from self._look_soon()

    def suspect(self, node: Address) -> Flow[None]:
        """This one could not be reached, or did not answer."""
        self._suspects.add(node)
        self.on_suspect(node)
        yield from self._look_soon()

    def look(self, deadline: float) -> Flow[None]:
        """Learn it anew, or wait for whoever is learning it."""
        self._looked_at = yield NOW
        try:
            yield from self._look.wait(deadline)
        except TimeoutError as error:
            raise BackendUnavailable("no node of the cluster told in time who has what") from error

    def _look_soon(self) -> Flow[None]:
        now: float = yield NOW
        if now - self._looked_at > LOOK_AGAIN_S:
            self._looked_at = now
            yield from self._look.begin(now)

    def server(self, node: Address) -> Server:
        return self._seeds[0].at(*node)

    def servers(self) -> list[Address]:
        """All that are known, those first that are not suspected."""
        known = dict.fromkeys([*self._slots.nodes(), *(_place(seed) for seed in self._seeds)])
        return sorted(known, key=lambda node: node in self._suspects)

    def _learn(self, deadline: float) -> Flow[None]:
        told, asked = yield from first(
            [self._ask(node, deadline) for node in self.servers()], deadline, lambda reply: None, STAGGER_S
        )
        self._slots.learn(told, asked)
        known = {*self._slots.nodes(), *(_place(seed) for seed in self._seeds)} - {asked}
        self._suspects &= known

    def _ask(self, node: Address, deadline: float) -> Flow[tuple[list[object], Address]]:
        server = self.server(node)
        reply = yield from self._connector.ask(server, command("CLUSTER", "SLOTS"), deadline)
        if isinstance(reply, Error):
            raise translated(reply)
        if not isinstance(reply, list):
            raise refused(server.place, ConnectionError(f"it answers CLUSTER SLOTS with {reply!r}"))
        return reply, node

    def connect_anywhere(self, deadline: float) -> Flow[RedisConnection]:
        """To any node: pushes reach a waiter through each of them."""
        ways = [self._connect_to(node, deadline) for node in self.servers()]
        try:
            link, self.listening_at = yield from first(ways, deadline, lambda pair: pair[0].close(), STAGGER_S)
        except TimeoutError as error:
            raise refused("any node of the cluster", error) from error
        return link

    def _connect_to(self, node: Address, deadline: float) -> Flow[tuple[RedisConnection, Address]]:
        link = yield from self._connector.connect(self.server(node), deadline)
        return link, node

    def close(self, error: Exception) -> None:
        self._look.fail(error)


def _place(seed: Server) -> Address:
    return seed.host, seed.port
