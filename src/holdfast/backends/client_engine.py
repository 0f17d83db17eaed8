"""What makes an engine of a client that is flows: opening is a flow, and each wire has a client of its own.

An engine gives `open`; here it gets what the coordinators use, in both colours. Nothing is asked of a server before
the first wire is made.
"""

from __future__ import annotations

from typing import Generic

from .._core.flow import Flow
from ..ports import AsyncWire, Backend, Opened, Reply, Request, Wire


class ClientEngine(Generic[Request, Reply]):
    """To be derived from, with `open` and `url`."""

    url: str
    _backend: Backend[Request, Reply] | None = None

    def open(self) -> Flow[Opened[Request, Reply]]:
        """Connect, and learn what the server can promise; bounded by the engine's request timeout."""
        raise NotImplementedError

    @property
    def backend(self) -> Backend[Request, Reply]:
        """The backend that belongs to the newest wire."""
        if self._backend is None:  # somebody wants to know what is promised before anything is locked
            self.wire().close()
        assert self._backend is not None
        return self._backend

    @backend.setter
    def backend(self, backend: Backend[Request, Reply]) -> None:
        self._backend = backend

    def wire(self) -> Wire[Request, Reply]:
        """Open it for threads: a client and a backend of its own."""
        from ..sync.client_wire import open_wire

        self._backend, wire = open_wire(self.open())
        return wire

    async def async_wire(self) -> AsyncWire[Request, Reply]:
        """Open it for the running loop: a client and a backend of its own."""
        from ..aio.client_wire import open_wire

        self._backend, wire = await open_wire(self.open())
        return wire
