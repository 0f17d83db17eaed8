"""Bugs below the wire: nothing times out, nothing connects again, the loop is blocked, a piece is taken for a reply."""

from __future__ import annotations

import asyncio
import pickle
import socket
from typing import Any

import pytest

from holdfast._core.flow import Flow
from holdfast._core.lease import Hold
from holdfast._core.renewal import Keeper
from holdfast.testing import contract_promises
from tests.contract.plants.over_tcp import HEAD, TcpWire, serving
from tests.contract.plants.plant import plant

SILENT = [promise.name for promise in contract_promises() if promise.name.startswith("silent_network.")]
IDLE = [promise.name for promise in contract_promises() if promise.name.startswith("idle_network.")]
LEFT_OPEN: list[asyncio.StreamWriter] = []
"""Until the process ends: what is collected while it is open would be complained about in another test."""
AFTERWARDS = ("bad_network.a_short_outage_costs_nothing", "bad_network.afterwards_everybody_gets_in")


@plant(*SILENT, "bad_network.replies_that_are_swallowed_leave_nothing", under_test=serving)
def nothing_times_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TcpWire, "patience", lambda self, timeout: None)


@plant(*IDLE, *AFTERWARDS, under_test=serving)
def a_connection_is_kept_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Also when it is broken."""
    links: dict[int, Any] = {}
    real = TcpWire.dial

    async def dial(self: TcpWire) -> Any:
        if id(self) not in links:
            links[id(self)] = await real(self)
        return links[id(self)]

    patch.setattr(TcpWire, "idle", lambda self: None)
    patch.setattr(TcpWire, "dial", dial)


@plant(
    "bad_network.a_body_is_told_before_its_time_is_over",
    "bad_network.nobody_else_holds_before_it_is_told",
    under_test=serving,
)
def loss_waits_for_the_network(patch: pytest.MonkeyPatch) -> None:
    """A renewal takes longer than any ttl of these promises, and nobody looks at the clock meanwhile."""
    under_way: list[object] = []
    real_look, real_renew = Keeper.look, Keeper._renew

    def renew(self: Keeper, holds: list[Hold]) -> Flow[None]:
        under_way.append(holds)
        try:
            yield from real_renew(self, holds)
        finally:
            under_way.pop()

    patch.setattr(Keeper, "look", lambda self, now: now + 0.01 if under_way else real_look(self, now))
    patch.setattr(Keeper, "_renew", renew)
    patch.setattr(TcpWire, "patience", lambda self, timeout: 20.0)


@plant("silent_network.connecting_ends_and_blocks_no_loop", under_test=serving)
def the_loop_is_blocked(patch: pytest.MonkeyPatch) -> None:
    async def exchange(self: TcpWire, data: bytes) -> Any:
        with socket.create_connection(self._place, 5.0) as link:
            link.sendall(data)
            [size] = HEAD.unpack(link.recv(HEAD.size, socket.MSG_WAITALL))
            return pickle.loads(link.recv(size, socket.MSG_WAITALL))

    patch.setattr(TcpWire, "exchange", exchange)


@plant("bad_network.one_byte_at_a_time_changes_nothing", under_test=serving, slips=True)
def a_piece_is_taken_for_a_reply(patch: pytest.MonkeyPatch) -> None:
    async def read(self: TcpWire, reader: asyncio.StreamReader) -> bytes:
        return (await reader.read(1 << 20))[HEAD.size :]

    patch.setattr(TcpWire, "read", read)


@plant(
    *(promise.name for promise in contract_promises() if promise.name.startswith("left_connections.")),
    under_test=serving,
)
def connections_are_never_closed(patch: pytest.MonkeyPatch) -> None:
    real = TcpWire.dial

    async def dial(self: TcpWire) -> Any:
        reader, writer = await real(self)
        LEFT_OPEN.append(writer)
        patch.setattr(writer, "close", lambda: None)
        return reader, writer

    patch.setattr(TcpWire, "dial", dial)
