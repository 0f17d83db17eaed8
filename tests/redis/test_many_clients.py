"""A server that has as many clients as it takes: nothing was sent, and whoever connects is told so."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from tests.redis.faces import both
from tests.support.redis_server import running


@both
def test_nothing_is_thought_to_be_carried_out(face: str) -> None:
    async def open_it(url: str) -> None:
        await holdfast.aio.connect(url)

    def connect(url: str) -> None:
        if face == "sync":
            holdfast.connect(url)
        else:
            asyncio.run(open_it(url))

    with running(maxclients="8") as server, ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        with pytest.raises(BackendUnavailable) as refused:
            connect(server.url)
        assert not isinstance(refused.value, OutcomeUnknown)
