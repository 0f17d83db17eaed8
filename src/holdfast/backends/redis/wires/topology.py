"""Which node of a cluster has which slot: the same for threads and tasks.

1. It is learned from any node that answers: one after the other is asked, and one that hangs costs a moment. Whom
   requests could not reach is asked last.
2. It is learned anew when a node could not be reached, did not answer, or sent a request elsewhere: that is how a
   fail-over is noticed. One look at a time, beside the requests, and not one after the other without a pause.
3. Who has to know waits for the look under way, for as long as its request may take.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .... import clock
from ....errors import BackendUnavailable
from ..resp import Error, command
from ..slots import Address, SlotMap
from ..trouble import translated
from .beside import LEAST_DIAL_S, Job, first
from .dialling import Server, open_pipe, refused
from .link import Link
from .pipes import Pipe

LOOK_AGAIN_S = 0.2
"""Between two looks that nobody waits for."""


class Topology:
    """The nodes of one cluster."""

    def __init__(self, seeds: Sequence[Server], timeout: float) -> None:
        self._seeds = seeds
        self._timeout = max(timeout, LEAST_DIAL_S)
        self._slots = SlotMap()
        self._mutex = threading.Lock()
        self._look: Job[None] | None = None
        self._looked_at = 0.0
        self._suspects: dict[Address, None] = {}
        self.on_suspect: Callable[[Address], None] = lambda node: None
        """Told of a node that did not do well."""

    def node(self, key: bytes) -> Address | None:
        return self._slots.node(key)

    def nodes(self) -> list[Address]:
        return self._slots.nodes()

    def need(self, key: bytes) -> Address:
        """Who has this key, after a look."""
        if (node := self._slots.node(key)) is None:
            raise BackendUnavailable("the cluster has no node for some keys at this moment; see CLUSTER INFO")
        return node

    def moved(self, slot: int, node: Address) -> None:
        """A node said so: most likely more has changed."""
        self._slots.moved(slot, node)
        self.look_soon()

    def suspect(self, node: Address) -> None:
        """This one could not be reached, or did not answer."""
        self._suspects[node] = None
        self.on_suspect(node)
        self.look_soon()

    def look(self) -> Job[None]:
        """A look that is under way: to be waited for."""
        with self._mutex:
            if self._look is None or self._look.done:
                self._looked_at = clock.now()
                self._look = Job(self._learn)
            return self._look

    def look_soon(self) -> None:
        if clock.now() - self._looked_at > LOOK_AGAIN_S:
            self.look()

    def server(self, node: Address) -> Server:
        return self._seeds[0].at(*node)

    def servers(self) -> list[tuple[Address, Server]]:
        """All that are known, those first that are not suspected."""
        known = dict.fromkeys([*self._slots.nodes(), *(_place(seed) for seed in self._seeds)])
        return [(node, self.server(node)) for node in sorted(known, key=lambda node: node in self._suspects)]

    def _learn(self) -> None:
        end = clock.now() + self._timeout
        specs = [partial(self._ask, node, server, end) for node, server in self.servers()]
        told, asked = first(specs, self._timeout, lambda reply: None)
        self._slots.learn(told, asked)
        known = {*self._slots.nodes(), *(_place(seed) for seed in self._seeds)} - {asked}
        self._suspects = {node: None for node in self._suspects if node in known}

    def _ask(self, node: Address, server: Server, end: float) -> tuple[Any, Address]:
        link = Link(server.dial(end - clock.now()))
        try:
            reply = link.exchange(command("CLUSTER", "SLOTS"), max(0.001, end - clock.now()))
        except OSError as error:
            raise refused(server.place, error) from error
        finally:
            link.close()
        if isinstance(reply, Error):
            raise translated(reply)
        return reply, node


class AnyNode:
    """Opens connections to any node of a cluster: pushes reach a waiter through each of them."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.at: Address | None = None
        """Which it was, last time."""

    @property
    def pushes(self) -> bool:
        return False  # such a connection carries nothing but pushes

    @property
    def place(self) -> str:
        return "any node of the cluster"

    def dial(self, timeout: float) -> socket.socket:
        end = clock.now() + timeout

        def dial_one(node: Address, server: Server) -> tuple[socket.socket, Address]:
            return server.dial(end - clock.now()), node

        dials = [partial(dial_one, node, server) for node, server in self._topology.servers()]
        try:
            sock, self.at = first(dials, timeout, lambda dialled: dialled[0].close())
        except TimeoutError as error:
            raise refused(self.place, error) from error
        return sock

    async def dial_async(self, timeout: float) -> Pipe:
        return await open_pipe(self, timeout)


def _place(seed: Server) -> Address:
    return str(seed.options.get("host", "localhost")), seed.port
