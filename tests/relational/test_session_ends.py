"""A session ends, or refuses to let go: nobody of the same coordinator is let in before the holder was told."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import HoldfastError
from tests.relational.house import House
from tests.relational.test_session_locks import LONG, PATIENT, until


def end_the_holder(house: House, url: str, name: str) -> None:
    session = house.holder(url, name)
    assert session is not None
    house.end_session(session)
    until(lambda: house.holder(url, name) is None)


def test_the_next_thread_gets_in_after_the_holder_was_told(session_url: str, house: House) -> None:
    """Whoever of one coordinator comes after the end of a session waits until its holder knows of it."""
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        lease = locks.lock("door", ttl=9).acquire()
        end_the_holder(house, session_url, "door")
        told: list[bool] = []

        def enter() -> None:
            with locks.lock("door", timeout=LONG) as newer:
                told.append(lease.lost.is_set())
                assert newer.token > lease.token

        threads = [threading.Thread(target=enter) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert told == [True] * 3
        assert lease.reason in ("session", "expired")


def test_the_next_task_gets_in_after_the_holder_was_told(session_url: str, house: House) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(session_url, request_timeout=LONG) as locks:
            lease = await locks.lock("door", ttl=9).acquire()
            await asyncio.to_thread(end_the_holder, house, session_url, "door")

            async def enter() -> bool:
                async with locks.lock("door", timeout=LONG) as newer:
                    assert newer.token > lease.token
                    return lease.lost.is_set()

            assert await asyncio.gather(*(enter() for _ in range(3))) == [True] * 3
            assert lease.reason in ("session", "expired")

    asyncio.run(main())


def test_a_holder_that_never_asks_keeps_nobody_out_for_ever(session_url: str, house: House) -> None:
    """Without renewal it is told by its own clock, and its place is over then."""
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        lease = locks.lock("door", ttl=1, renew=False).acquire()
        end_the_holder(house, session_url, "door")
        with locks.lock("door", timeout=LONG):
            assert lease.lost.is_set()


class Refusing:
    """A codec whose first unlock is refused by the server."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec
        self._refused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)

    def unlock(self, name: str) -> Any:
        order = self._codec.unlock(name)
        if self._refused:
            return order
        self._refused = True
        if hasattr(order, "statement"):
            return order._replace(statement=order.statement._replace(text=b"SELECT 1/0 + $1", name=b"refused"))
        return order._replace(text=b"SIGNAL SQLSTATE '45000'", values=b"")


def refuse_once(wire: Any) -> None:
    client = getattr(wire, "_client", wire)
    client._codec = Refusing(client._codec)


def test_an_unlock_that_is_refused_is_tried_again(session_url: str, house: House) -> None:
    """The lock is still held, so its hold is not forgotten."""
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        lease = locks.lock("door", **PATIENT).acquire()
        refuse_once(locks._wire)
        try:
            lease.release()
        except HoldfastError:
            pass  # told so; what matters is what becomes of the lock
        until(lambda: house.holder(session_url, "door") is None)
        with locks.lock("door", timeout=LONG):
            pass


def test_an_unlock_that_is_refused_is_tried_again_for_tasks(session_url: str, house: House) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(session_url, request_timeout=LONG) as locks:
            lease = await locks.lock("door", **PATIENT).acquire()
            refuse_once(locks._wire)
            try:
                await lease.release()
            except HoldfastError:
                pass  # told so; what matters is what becomes of the lock
            await asyncio.to_thread(until, lambda: house.holder(session_url, "door") is None)
            async with locks.lock("door", timeout=LONG):
                pass

    asyncio.run(main())


@pytest.mark.parametrize("scheme", ["table", "session"])
def test_nothing_but_our_own_errors_comes_out_of_giving_up(
    url: str, session_url: str, house: House, scheme: str
) -> None:
    """Whoever waits when its session ends gives up as always."""

    async def main() -> None:
        where = session_url if scheme == "session" else url
        async with holdfast.aio.connect(where) as locks, holdfast.aio.connect(where) as others:
            lease = await locks.lock("door", **PATIENT).acquire()
            waiting = [asyncio.ensure_future(others.lock("door").acquire()) for _ in range(3)]
            while len((await locks.survey("door"))[0].waiters) < 3:
                pass
            mine = house.holder(where, "door") if scheme == "session" else None
            for session in house.sessions(url):  # the loop has no time to notice
                if session != mine:
                    house.end_session(session)
            for task in waiting:
                task.cancel()
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(end) for end in ends] == [asyncio.CancelledError] * 3
            await lease.release()

    asyncio.run(main())
