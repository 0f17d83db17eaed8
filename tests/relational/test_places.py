"""Many who wait in one coordinator come, keep their places and give up in few requests; each is told as if alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast._core.flow import NEW_EVENT, NOW, Flow
from holdfast.backends.queue_backend import Push, QueueBackend, Release, Take, Taken
from holdfast.backends.relational.batch import LeaveAll, Left, LookAll, Looked
from holdfast.backends.relational.places import BUSY_COUNT, MOST_COUNT, Places
from holdfast.backends.relational.table_client import TableClient
from holdfast.model import Claim, LockSpec, Promises, Queued

MANY_COUNT = 300
FEW_COUNT = MANY_COUNT // 10


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What clients of lock tables ask their servers for."""
    requests: list[Any] = []
    ask = TableClient._ask

    def asked(client: TableClient, request: Any, *rest: Any) -> Flow[Any]:
        requests.append(request)
        return ask(client, request, *rest)

    monkeypatch.setattr(TableClient, "_ask", asked)
    return requests


Then = Callable[[holdfast.aio.Coordinator], Awaitable[None]]


def story(url: str, ttl: float, then: Then) -> list[int]:
    """Many want what is held; `then` happens while all of them wait. Answers with the order of those who got it."""
    order: list[int] = []

    async def main() -> None:
        async with holdfast.aio.connect(url, request_timeout=60) as locks, asyncio.timeout(240):

            async def want(number: int) -> None:
                async with locks.lock("door", ttl=ttl):
                    order.append(number)

            held = await locks.lock("door", ttl=60).acquire()
            tasks = [asyncio.create_task(want(number)) for number in range(MANY_COUNT)]
            while len(await waiters(locks)) < MANY_COUNT:
                pass
            await then(locks)
            await held.release()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert not await locks.survey()

    asyncio.run(main())
    return order


async def waiters(locks: holdfast.aio.Coordinator) -> Sequence[Any]:
    return [waiter for view in await locks.survey() for waiter in view.waiters]


def of(kind: type, sent: list[Any]) -> list[Any]:
    return [request for request in sent if isinstance(request, kind)]


def test_those_who_come_at_once_come_together_and_in_their_order(url: str, sent: list[Any]) -> None:
    async def nothing(locks: holdfast.aio.Coordinator) -> None:
        joins = [take for take in of(Take, sent) if take.queue]
        assert len(joins) < 2 * BUSY_COUNT + FEW_COUNT, len(joins)  # the first of them twice: they open the listener

    order = story(url, 30.0, nothing)
    assert sorted(order) == [*range(MANY_COUNT)]
    assert order[BUSY_COUNT:] == [*range(BUSY_COUNT, MANY_COUNT)], "whoever comes with others keeps its place"


def test_places_are_kept_in_few_requests(url: str, sent: list[Any]) -> None:
    async def look_on(locks: holdfast.aio.Coordinator) -> None:
        sent.clear()
        while sum(len(look.claims) for look in of(LookAll, sent)) < 5 * MANY_COUNT:
            await waiters(locks)
        alone = len(of(Take, sent))
        assert len(of(LookAll, sent)) + alone < 5 * FEW_COUNT, (len(of(LookAll, sent)), alone)
        assert len(await waiters(locks)) == MANY_COUNT, "nobody has lost a place"
        sent.clear()

    order = story(url, 2.0, look_on)  # its third is no whole number of anything
    assert sorted(order) == [*range(MANY_COUNT)]


def test_those_who_give_up_leave_in_few_requests(url: str, sent: list[Any]) -> None:
    async def cancel(locks: holdfast.aio.Coordinator) -> None:
        tasks = [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "want"]  # type: ignore[union-attr]
        sent.clear()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert sum(len(leave.claims) for leave in of(LeaveAll, sent)) == MANY_COUNT
        assert len(of(LeaveAll, sent)) <= MANY_COUNT // MOST_COUNT + 2, "the first one leaves by itself"
        assert not of(Release, sent)
        assert not await waiters(locks)

    assert story(url, 30.0, cancel) == []


# By hand


def played(flow: Flow[Any], clock: list[float]) -> Any:
    """Run it; each look at the clock takes the next reading, and the last one stays."""
    answer: Any = None
    try:
        while True:
            op = flow.send(answer)
            assert op is NOW or op is NEW_EVENT, op
            answer = (clock.pop(0) if len(clock) > 1 else clock[0]) if op is NOW else Quiet()
    except StopIteration as stop:
        return stop.value


class Quiet:
    def set(self) -> None: ...


CLAIMS = [Claim(LockSpec("door", ttl=30.0), f"o{number}", "actor") for number in range(3)]
WAITS = Taken(0, 3.333333, 1, mark=5)


class FakeServer:
    def __init__(self, gone: Sequence[Claim] = ()) -> None:
        self.gone = gone
        self.asked: list[Any] = []
        self.roused: list[str] = []
        self.told: list[tuple[str, Push]] = []
        self.places = Places(self.ask, self.told.extend, self.roused.append, self.join_all)
        for claim in CLAIMS:
            played(self.places.enter(claim, WAITS), [0.0])

    def ask(self, request: LookAll | LeaveAll, deadline: float) -> Flow[Looked | Left]:
        yield from ()
        self.asked.append(request)
        if isinstance(request, LeaveAll):
            return Left([False] * len(request.claims), [("o1", Push(9))])
        return Looked([None if claim in self.gone else WAITS for claim in request.claims], [("o2", Push(7))])

    def join_all(self, claims: Sequence[Claim], deadline: float) -> Flow[Sequence[Taken | None]]:
        yield from ()
        assert not claims, "nobody comes"
        return []


def test_a_look_takes_along_whoever_has_not_looked_for_a_while() -> None:
    server = FakeServer()
    assert played(server.places.look(CLAIMS[1], 99.0), [3.4]) == Taken(0, WAITS.look_again, 1, mark=5)
    assert server.asked == [LookAll([CLAIMS[1], CLAIMS[0], CLAIMS[2]])]
    assert server.told == [("o2", Push(7))]
    played(server.places.look(CLAIMS[0], 99.0), [4.0])
    assert len(server.asked) == 1, "its place was kept"
    played(server.places.look(CLAIMS[0], 99.0), [3.4 + WAITS.look_again - 1e-9])
    assert len(server.asked) == 2, "a moment before it is due there is nothing to wait for"


def test_one_that_has_just_come_is_not_taken_along() -> None:
    server = FakeServer()
    played(server.places.enter(CLAIMS[2], WAITS), [3.3])
    played(server.places.look(CLAIMS[1], 99.0), [3.4])
    assert server.asked == [LookAll([CLAIMS[1], CLAIMS[0]])]


def test_patience_counts_from_when_the_look_of_another_was_sent() -> None:
    server = FakeServer()
    played(server.places.look(CLAIMS[1], 99.0), [3.4, 3.9])  # the reply takes half a second
    taken = played(server.places.look(CLAIMS[0], 99.0), [4.4])
    assert taken.age == pytest.approx(1.0)
    assert taken.look_again == pytest.approx(WAITS.look_again - 1.0)
    backend = QueueBackend("x", "y", Promises(frozenset(), {}), 0.1, 5.0)
    take = backend.take(CLAIMS[0], True)
    take.send(None)
    take.send(4.4)
    with pytest.raises(StopIteration) as stop:
        take.send([taken])
    queued = stop.value.value
    assert isinstance(queued, Queued)
    assert queued.since == pytest.approx(3.4)


def test_one_that_was_taken_along_and_does_not_wait_is_roused_and_asks_by_itself() -> None:
    server = FakeServer(gone=[CLAIMS[0]])
    played(server.places.look(CLAIMS[1], 99.0), [3.4])
    assert server.roused == ["o0"]
    assert "o0" not in server.places


def test_the_first_in_line_and_one_that_is_alone_ask_by_themselves() -> None:
    server = FakeServer()
    played(server.places.enter(CLAIMS[0], Taken(0, 0.5, 1, mark=5)), [0.0])
    assert played(server.places.look(CLAIMS[0], 99.0), [0.5]) is None, "that may grant it"
    for claim in CLAIMS[1:]:
        server.places.forget(claim.owner)
    played(server.places.enter(CLAIMS[0], WAITS), [0.0])
    assert played(server.places.look(CLAIMS[0], 99.0), [3.4]) is None
    assert not server.asked
