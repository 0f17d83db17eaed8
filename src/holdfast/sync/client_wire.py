"""The blocking wire of an engine whose client is flows: it runs them, and decides nothing."""

from __future__ import annotations

from typing import Generic

from .._core.flow import Flow
from ..clock import now as clock
from ..ports import Backend, Client, Opened, Reply, Request, Wire
from .client_driver import Monitor

GOODBYE_S = 5.0
"""How long closing may take where the engine names no time of its own."""


class ClientWire(Generic[Request, Reply]):
    """One client and its monitor."""

    __slots__ = ("_client", "_monitor", "_patience_s")

    def __init__(self, client: Client[Request, Reply], monitor: Monitor, patience_s: float = GOODBYE_S) -> None:
        self._client = client
        self._monitor = monitor
        self._patience_s = patience_s

    def call(self, request: Request, timeout: float) -> Reply:
        return self._monitor.run(self._client.call(request, clock() + timeout))

    def wait(self, owner: str, timeout: float) -> Reply | None:
        return self._monitor.run(self._client.wait(owner, clock() + timeout))

    def before_fork(self) -> None:
        """No flow is inside a step while the process forks, so the child finds a whole state."""
        self._monitor.enter()

    def after_fork_in_parent(self) -> None:
        self._monitor.leave()

    def after_fork_in_child(self) -> None:
        self._monitor = Monitor()
        self._client.after_fork_in_child()

    def close(self) -> None:
        self._monitor.run(self._client.close(clock() + self._patience_s))


def open_wire(opening: Flow[Opened[Request, Reply]]) -> tuple[Backend[Request, Reply], Wire[Request, Reply]]:
    """What `opening` has opened, run by threads; the caller closes the wire."""
    monitor = Monitor()
    opened = monitor.run(opening)
    return opened.backend, ClientWire(opened.client, monitor)
