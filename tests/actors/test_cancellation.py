"""Tasks that are cancelled while they tell, ask or handle; and what a handler may not be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast.aio
from holdfast.testing import FakeClock


async def _add(actor: holdfast.aio.Actor, amount: int) -> int:
    actor.state = (actor.state or 0) + amount
    return int(actor.state)


def test_whoever_gives_up_waiting_for_room_has_told_nothing() -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://actors-room") as locks:
            accounts = locks.actors("accounts", _add, capacity=1)
            await accounts.tell("alice", 1)
            waiting = asyncio.ensure_future(accounts.tell("alice", 10))
            await asyncio.sleep(1)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()
            async with accounts:
                assert await accounts.ask("alice", 0) == 1

    FakeClock().run(main())


def test_whoever_gives_up_an_answer_has_told_it_all_the_same() -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://actors-answer") as locks:
            accounts = locks.actors("accounts", _add)
            asking = asyncio.ensure_future(accounts.ask("alice", 5))
            await asyncio.sleep(1)
            asking.cancel()
            await asyncio.wait([asking])
            async with accounts:
                assert await accounts.ask("alice", 0) == 5

    FakeClock().run(main())


def test_a_handler_that_is_cancelled_has_not_failed() -> None:
    async def main() -> None:
        begun, gate, tries = asyncio.Event(), asyncio.Event(), list[int]()

        async def handle(actor: holdfast.aio.Actor, message: Any) -> None:
            tries.append(actor.tries)
            begun.set()
            await gate.wait()
            actor.state = message

        async with holdfast.aio.connect("memory://actors-handler") as locks:
            jobs = locks.actors("jobs", handle, tries=1)
            await jobs.tell("a", "done")
            for _ in range(3):
                begun.clear()
                running = asyncio.ensure_future(jobs.run())
                await begun.wait()
                running.cancel()
                await asyncio.wait([running])
                assert running.cancelled()
                assert await locks.survey() == []
            gate.set()
            async with jobs:
                await jobs.ask("a", "last")
            assert tries == [1, 1, 1, 1, 1]
            assert await jobs.dead_letters() == []

    FakeClock().run(main())


def test_workers_end_when_they_are_told_to_and_with_their_coordinator() -> None:
    async def main() -> None:
        locks = await holdfast.aio.connect("memory://actors-workers")
        accounts, stop = locks.actors("accounts", _add), asyncio.Event()
        running = asyncio.ensure_future(accounts.run(stop))
        assert await accounts.ask("alice", 1) == 1
        with pytest.raises(holdfast.Misconfigured, match="runs already"):
            await accounts.run()
        stop.set()
        await running
        running = asyncio.ensure_future(accounts.run())
        assert await accounts.ask("alice", 1) == 2
        await locks.close()
        await running

    FakeClock().run(main())


def test_a_handler_is_of_the_right_colour() -> None:
    def plain(actor: Any, message: Any) -> None: ...

    async def main() -> None:
        async with holdfast.aio.connect("memory://actors-colour") as locks:
            with pytest.raises(holdfast.Misconfigured, match="plain function"):
                locks.actors("accounts", plain)  # type: ignore[arg-type]

    asyncio.run(main())
    with holdfast.connect("memory://actors-colour-threads") as locks:
        with pytest.raises(holdfast.Misconfigured, match="coroutine function"):
            locks.actors("accounts", _add)  # type: ignore[arg-type]
        with pytest.raises(holdfast.Misconfigured, match="functions"):
            locks.actors("accounts", 7)  # type: ignore[arg-type]
