"""A flow of a client that is cancelled while it dials leaves nothing open."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from unittest.mock import patch

from holdfast._core.flow import Endpoint, Flow, Open
from holdfast.aio import client_driver as aio_driver
from holdfast.aio.client_driver import run_client
from holdfast.aio.connection import TaskConnection, open_connection
from holdfast.clock import now as clock


def test_a_connection_that_is_made_in_the_step_of_a_cancellation_is_closed() -> None:
    """The flow is cancelled after the connection was there, and before it was given it."""

    async def main() -> None:
        made: list[TaskConnection] = []
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        real = open_connection

        def cancel_soon() -> None:
            asyncio.get_running_loop().call_soon(task.cancel)

        async def open_and_cancel(endpoint: Endpoint, deadline: float) -> TaskConnection:
            made.append(await real(endpoint, deadline))
            asyncio.get_running_loop().call_soon(cancel_soon)
            return made[0]

        def flow() -> Flow[None]:
            yield Open(Endpoint("127.0.0.1", port), clock() + 5)
            raise AssertionError("it was cancelled")

        with patch.object(aio_driver, "open_connection", open_and_cancel):
            task = asyncio.ensure_future(run_client(flow(), drain=False))
            with suppress(asyncio.CancelledError):
                await task
        assert made[0].closed
        server.close()

    asyncio.run(main())
