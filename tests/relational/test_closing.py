"""Whoever closes while others of the coordinator wait leaves no ghost in the line, and takes nobody's cancellation."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import HoldfastError
from tests.relational.house import House

SOON = 5.0
"""Less than the 10 s for which a place is kept, more than a busy machine needs."""


@pytest.fixture(params=["table", "session"])
def where(request: pytest.FixtureRequest, url: str, session_url: str) -> str:
    return url if request.param == "table" else session_url


def test_who_waited_is_out_of_the_line(where: str) -> None:
    with holdfast.connect(where) as locks, locks.lock("door"):
        closing = holdfast.connect(where)
        ends: list[BaseException] = []

        def wait() -> None:
            try:
                closing.lock("door", ttl=60).acquire()
            except HoldfastError as error:
                ends.append(error)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(locks.survey("door")[0].waiters) < 3:
            pass
        began = time.monotonic()
        closing.close()
        while locks.survey("door")[0].waiters:
            assert time.monotonic() - began < SOON, "a ghost waits"
        for thread in threads:
            thread.join(SOON)
        assert len(ends) == 3


def test_who_waited_is_out_of_the_line_for_tasks(where: str) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(where) as locks, locks.lock("door"):
            closing = await holdfast.aio.connect(where)
            waiting = [asyncio.ensure_future(closing.lock("door", ttl=60).acquire()) for _ in range(3)]
            while len((await locks.survey("door"))[0].waiters) < 3:
                pass
            async with asyncio.timeout(SOON):
                await closing.close()
                while (await locks.survey("door"))[0].waiters:
                    pass
                ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(end, HoldfastError) for end in ends)

    asyncio.run(main())


def test_a_cancellation_is_not_replaced_by_the_close(where: str) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(where) as locks, locks.lock("door"):
            for number in range(5):
                closing = await holdfast.aio.connect(where)
                waiting = [asyncio.ensure_future(closing.lock("door", ttl=60).acquire()) for _ in range(3)]
                while len((await locks.survey("door"))[0].waiters) < 3:
                    pass
                for task in waiting:
                    task.cancel()
                for _ in range(number):
                    await asyncio.sleep(0)
                await closing.close()
                ends = await asyncio.gather(*waiting, return_exceptions=True)
                assert [type(end) for end in ends] == [asyncio.CancelledError] * 3

    asyncio.run(main())


def test_a_cancelled_connect_leaves_no_connection(where: str, url: str, house: House) -> None:
    async def main() -> None:
        for number in range(12):
            connecting = asyncio.ensure_future(opened(where))
            await asyncio.sleep(0.004 * number)
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            if not connecting.cancelled() and connecting.exception() is None:
                await connecting.result().close()

    async def opened(where: str) -> holdfast.aio.Coordinator:
        return await holdfast.aio.connect(where)

    asyncio.run(main())
    end = time.monotonic() + 60
    while house.sessions(url):
        assert time.monotonic() < end, "a connection was left open"
        time.sleep(0.05)
