"""`Limiter.used`: how much of a burst is spent, without spending any."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
import holdfast.aio


@pytest.mark.parametrize("scheme", ["memory", "sqlite"])
def test_looking_tells_and_spends_nothing(scheme: str, tmp_path: Path) -> None:
    with holdfast.connect(f"{scheme}://{tmp_path}/used") as locks:
        limiter = locks.limiter("mail", "1/h", burst=3)
        assert limiter.used() == 0
        assert limiter.try_acquire(cost=2)
        for _ in range(10):
            assert 1.99 < limiter.used() <= 2
        assert [limiter.try_acquire(), limiter.try_acquire()] == [True, False]
        assert 2.99 < limiter.used() <= 3


def test_what_is_booked_counts_beyond_the_burst() -> None:
    with holdfast.connect("memory://used") as locks:
        limiter = locks.limiter("mail", "50/s")
        for _ in range(3):
            limiter.acquire()
        assert 0 <= limiter.used() <= 1


def test_tasks_ask_in_the_same_way() -> None:
    async def look() -> list[float]:
        async with holdfast.aio.connect("memory://used-by-tasks") as locks:
            limiter = locks.limiter("mail", "1/h", burst=2)
            before = await limiter.used()
            await limiter.acquire()
            return [before, round(await limiter.used(), 2)]

    assert asyncio.run(look()) == [0, 1]
