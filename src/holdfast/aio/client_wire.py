"""The asyncio wire of an engine whose client is flows: it runs them, and decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Generic

from .._core.flow import Flow
from ..clock import now as clock
from ..ports import AsyncWire, Backend, Client, Opened, Reply, Request, short_cuts_of
from .client_driver import run_client
from .short_call import short_call

GOODBYE_S = 5.0
"""How long closing may take where the engine names no time of its own."""


class AsyncClientWire(Generic[Request, Reply]):
    """One client, in one loop."""

    __slots__ = ("_client", "_patience_s", "_short_cuts")

    def __init__(self, client: Client[Request, Reply], patience_s: float = GOODBYE_S) -> None:
        self._client = client
        self._short_cuts = short_cuts_of(client)
        self._patience_s = patience_s

    def call(self, request: Request, timeout: float) -> Awaitable[Reply]:
        deadline = clock() + timeout
        if self._short_cuts is not None:
            reply = short_call(self._short_cuts, request, deadline)
            if reply is not None:
                return reply
        return run_client(self._client.call(request, deadline), drain=True)

    def wait(self, owner: str, timeout: float) -> Awaitable[Reply | None]:
        return run_client(self._client.wait(owner, clock() + timeout), drain=False)

    def before_fork(self) -> None:
        pass  # a loop does not fork in the middle of a step

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        self._client.after_fork_in_child()
        self._short_cuts = short_cuts_of(self._client)

    async def close(self) -> None:
        await run_client(self._client.close(clock() + self._patience_s), drain=True, shield=True)
        await asyncio.sleep(0)  # a loop closes the sockets at its next turn, and there may be no other


async def open_wire(opening: Flow[Opened[Request, Reply]]) -> tuple[Backend[Request, Reply], AsyncWire[Request, Reply]]:
    """What `opening` has opened, run by this loop; the caller closes the wire."""
    opened = await run_client(opening, drain=False)
    return opened.backend, AsyncClientWire(opened.client)
