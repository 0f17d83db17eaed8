"""Many who tell the same actor through one coordinator take turns: their writes do not conflict with each other."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from holdfast.aio import Actor, Coordinator, connect
from holdfast.recipes import actor_store
from holdfast.testing import FakeClock, memory_engine
from holdfast.testing.faults import FaultInjector, FaultyEngine

TELLERS_COUNT = 50


def requests_of_many() -> Counter[str]:
    """What is sent when so many tell at once."""
    faults = FaultInjector()

    async def main() -> None:
        engine = FaultyEngine(memory_engine(), faults)
        async with Coordinator(engine, await engine.async_wire(), 30.0, None, None) as locks:
            lists = locks.actors("lists")
            await asyncio.gather(*[lists.tell("a", number) for number in range(TELLERS_COUNT)])
            view = await lists.look("a")
            assert view is not None
            assert view.inbox == TELLERS_COUNT
            assert locks._core.actors.turns == {}

    FakeClock().run(main())
    return Counter(type(request).__name__ for request in faults.requests)


def test_each_writes_once() -> None:
    sent = requests_of_many()
    assert sent["SwapRecord"] == TELLERS_COUNT + 1  # and the index
    assert sent["ReadRecord"] == 2  # the first one, and the look of the test


def test_without_a_memory_each_reads_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor_store, "KNOWN_BYTES", 0)
    assert requests_of_many()["ReadRecord"] == TELLERS_COUNT + 1


def test_without_turns_most_write_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor_store, "TURN_S", 0.0)  # which bounds every turn
    assert requests_of_many()["SwapRecord"] > 2 * TELLERS_COUNT


def test_who_waits_for_room_is_not_in_the_way_of_the_worker() -> None:
    """Neither in the time of the ttl, nor in that of a turn: the clock is virtual."""

    async def handle(actor: Actor, message: int) -> None:
        actor.state = message

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with connect("memory://turns-room") as locks:
            numbers = locks.actors("numbers", handle, capacity=1)
            await numbers.tell("a", 0)
            began = loop.time()
            telling = [asyncio.ensure_future(numbers.tell("a", number, timeout=None)) for number in range(5)]
            await asyncio.sleep(0.1)
            async with numbers:
                await asyncio.gather(*telling)
            assert loop.time() - began < actor_store.TURN_S / 4

    FakeClock().run(main())
