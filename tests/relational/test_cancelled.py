"""A task that is cancelled while it connects leaves no connection behind."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

import holdfast.aio
from tests.relational.house import House, of_sessions

LOOKS = 400


@pytest.mark.parametrize("sessions", [False, True], ids=["table", "sessions"])
def test_a_cancelled_connect_leaves_no_connection(house: House, url: str, sessions: bool) -> None:
    async def connect() -> holdfast.aio.Coordinator:
        return await holdfast.aio.connect(of_sessions(url) if sessions else url)

    async def main() -> None:
        for pause in (0.0, 0.003, 0.01, 0.02, 0.04, 0.08):
            connecting = asyncio.ensure_future(connect())
            await asyncio.sleep(pause)
            connecting.cancel()
            with suppress(asyncio.CancelledError):
                await (await connecting).close()
        for _ in range(LOOKS):
            if not (left := house.sessions(url)):
                break
            await asyncio.sleep(0.05)
        assert left == []

    asyncio.run(main())
