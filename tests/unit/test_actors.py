"""Names of tasks: each has its own for as long as it lives, and the dead leave nothing behind."""

from __future__ import annotations

import asyncio
import itertools

from holdfast._core.deadlock import LOOSE
from holdfast.aio.actors import MIN_SWEEP_COUNT, Actors


def actors() -> Actors:
    numbers = itertools.count(1)
    return Actors(lambda: f"me.{next(numbers)}")


def test_a_task_keeps_its_name_and_another_has_another() -> None:
    async def main() -> None:
        names = actors()

        async def ask() -> tuple[str, str]:
            first = names.current(True)
            await asyncio.sleep(0)
            assert names.current(True) == first
            return first, names.current(False)

        pairs = await asyncio.gather(*(ask() for _ in range(5)))
        assert len({scoped for scoped, _ in pairs}) == 5
        assert all(loose == LOOSE + scoped for scoped, loose in pairs)

    asyncio.run(main())


def test_a_task_at_the_address_of_a_dead_one_is_somebody_else() -> None:
    async def main() -> None:
        names, seen = actors(), list[str]()
        addresses = set[int]()

        async def ask() -> None:
            addresses.add(id(asyncio.current_task()))
            seen.append(names.current(True))

        for _ in range(1000):
            await asyncio.ensure_future(ask())
        assert len(addresses) < 1000, "no address came twice: the test shows nothing"
        assert len(set(seen)) == 1000
        assert len(names) <= 2 * MIN_SWEEP_COUNT

    asyncio.run(main())
