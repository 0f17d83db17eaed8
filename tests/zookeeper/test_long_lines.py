"""What a line costs does not grow with those who stand in it, and many leave it with few writes."""

from __future__ import annotations

import asyncio

import pytest

import holdfast.aio
from tests.support.long_lines import FEW, MANY, Traffic, assert_flat, cancel, costs, counted, lock_of, settled
from tests.zookeeper.ensemble import Ensemble


@pytest.mark.parametrize("kind", ["lock", "writer", "permit"])
def test_a_long_line_costs_as_much_as_a_short_one(
    ensemble: Ensemble, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(monkeypatch) as traffic:
        few, many = (asyncio.run(costs(ensemble.url, kind, count, traffic)) for count in (FEW, MANY))
    assert_flat(few, many)


@pytest.mark.parametrize("kind", ["lock", "writer"])
def test_who_comes_behind_another_process_lists_nothing_while_one_of_its_own_waits(
    ensemble: Ensemble, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(monkeypatch) as traffic:
        few, many = (asyncio.run(_join_behind_others(ensemble.url, kind, count, traffic)) for count in (FEW, MANY))
    assert many <= few + 500, (few, many)


async def _join_behind_others(url: str, kind: str, count: int, traffic: Traffic) -> int:
    """Bytes of one join behind so many waiters of another coordinator."""
    async with holdfast.aio.connect(url) as locks, holdfast.aio.connect(url) as others:
        lock = lock_of(locks, kind, f"{kind}/behind/{count}")
        held = await lock.acquire()
        waiters = [asyncio.create_task(lock.acquire())]
        await settled(traffic)
        waiters += [asyncio.create_task(lock_of(others, kind, lock.name).acquire()) for _ in range(count)]
        await settled(traffic)
        before = traffic.sent_bytes + traffic.received_bytes
        waiters.append(asyncio.create_task(lock.acquire()))
        await settled(traffic)
        cost = traffic.sent_bytes + traffic.received_bytes - before
        await cancel(*waiters)
        assert await held.release()
        return cost


@pytest.mark.parametrize("kind", ["lock", "writer", "permit"])
def test_two_processes_that_take_turns_are_granted_in_order_and_list_the_line_now_and_then(
    ensemble: Ensemble, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes behind the other. One listing does for all who stand there."""
    with counted(monkeypatch) as traffic:
        few, many = (asyncio.run(_take_turns(ensemble.url, kind, count, traffic)) for count in (10, 100))
    assert many <= 2 * few, (few, many)


async def _take_turns(url: str, kind: str, count: int, traffic: Traffic) -> float:
    """Bytes of a hand-over, with so many waiters of two coordinators."""
    async with holdfast.aio.connect(url) as one, holdfast.aio.connect(url) as other:
        name = f"{kind}/turns/{count}"
        held = [await lock_of(one, kind, name).acquire() for _ in range(2 if kind == "permit" else 1)]
        order: list[int] = []
        waiters = []

        async def wait(number: int) -> None:
            lease = await lock_of((one, other)[number % 2], kind, name).acquire()
            order.append(number)
            assert await lease.release()

        for number in range(count):
            waiters.append(asyncio.create_task(wait(number)))
            while len((await one.survey(name))[0].waiters) <= number:
                pass  # until it stands there
        before = traffic.sent_bytes + traffic.received_bytes
        for lease in held:
            assert await lease.release()
        await asyncio.gather(*waiters)
        if kind != "permit":  # two of those may be told in either order
            assert order == list(range(count))
        return (traffic.sent_bytes + traffic.received_bytes - before) / count
