"""What the verbs of a long line cost: requests and bytes, counted at the connections of one coordinator of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import holdfast.aio
from holdfast.aio.connection import TaskConnection

FEW, MANY = 20, 1000
TTL = 60.0
ONE_LOOK_BYTES = 2500
"""On a slow machine each stream of etcd may begin too late to be sure, and its waiter looks at the few before it."""


@dataclass
class Traffic:
    """So far."""

    writes: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


@dataclass(frozen=True)
class Costs:
    """Of one verb each, in writes and bytes of both directions: the least of three.

    A stream that begins late makes its waiter look once more, and whoever gives up may happen to be the next one.
    """

    join: tuple[int, int]
    hand_over: tuple[int, int]
    give_up: tuple[int, int]
    give_up_all: tuple[int, int]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    traffic = Traffic()
    send, write, update = TaskConnection.send, TaskConnection.write, TaskConnection.buffer_updated

    def note(data: bytes) -> None:
        if data:
            traffic.writes += 1
            traffic.sent_bytes += len(data)

    def sending(self: TaskConnection, data: bytes, deadline: float) -> asyncio.Future[object] | None:
        note(data)
        return send(self, data, deadline)

    def writing(self: TaskConnection, data: bytes) -> bool:
        note(data)
        return write(self, data)

    def updated(self: TaskConnection, nbytes: int) -> None:
        traffic.received_bytes += nbytes
        update(self, nbytes)

    with monkeypatch.context() as patch:
        patch.setattr(TaskConnection, "send", sending)
        patch.setattr(TaskConnection, "write", writing)
        patch.setattr(TaskConnection, "buffer_updated", updated)
        yield traffic


def lock_of(locks: holdfast.aio.Coordinator, kind: str, name: str) -> holdfast.aio.Lock:
    if kind == "permit":
        return locks.semaphore(name, permits=2, ttl=TTL)
    return locks.rwlock(name, ttl=TTL).write() if kind == "writer" else locks.lock(name, ttl=TTL)


async def costs(url: str, kind: str, count: int, traffic: Traffic) -> Costs:
    """With so many waiters of one coordinator."""
    locks = await holdfast.aio.connect(url)
    lock = lock_of(locks, kind, f"{kind}/{count}")
    held = [await lock.acquire() for _ in range(2 if kind == "permit" else 1)]
    waiters: list[asyncio.Task[holdfast.aio.Lease]] = []

    async def join() -> None:
        waiters.append(asyncio.create_task(lock.acquire()))
        await settled(traffic)

    async def hand_over() -> None:
        assert await held.pop(0).release()
        done, _ = await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)  # whose request came first
        for waiter in done:
            waiters.remove(waiter)
            held.append(waiter.result())
        await settled(traffic)

    async def give_up() -> None:
        await cancel(waiters.pop(len(waiters) // 2))
        await settled(traffic)

    async def give_up_all() -> None:
        await cancel(*waiters)

    waiters += [asyncio.create_task(lock.acquire()) for _ in range(count)]
    await settled(traffic)
    for verb in (join, hand_over, give_up):  # what is done once in a while is done
        await verb()
    found = [min([await _cost(verb, traffic) for _ in range(3)]) for verb in (join, hand_over, give_up)]
    found.append(await _cost(give_up_all, traffic))
    for lease in held:
        await lease.release()
    assert not await locks.survey(lock.name)
    await locks.close()
    return Costs(*found)


async def cancel(*tasks: asyncio.Task[holdfast.aio.Lease]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def settled(traffic: Traffic) -> None:
    """Until nothing has been said for a while."""
    before = (-1, -1)
    while (now := (traffic.writes, traffic.received_bytes)) != before:
        before = now
        await asyncio.sleep(0.4)


async def _cost(verb: Callable[[], Awaitable[None]], traffic: Traffic) -> tuple[int, int]:
    writes, size = traffic.writes, traffic.sent_bytes + traffic.received_bytes
    await verb()
    return traffic.writes - writes, traffic.sent_bytes + traffic.received_bytes - size


def assert_flat(few: Costs, many: Costs) -> None:
    for verb in ("join", "hand_over", "give_up"):
        (few_writes, few_bytes), (many_writes, many_bytes) = getattr(few, verb), getattr(many, verb)
        assert many_writes <= few_writes + 1, (verb, few, many)
        assert many_bytes <= few_bytes + ONE_LOOK_BYTES, (verb, few, many)
    assert many.give_up_all[0] <= MANY // 20, (few, many)
