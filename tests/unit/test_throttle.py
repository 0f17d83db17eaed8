"""A few at a time, in the order of coming: to wait for its turn is no failure of a server that answers."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from holdfast._core.flow import NOW, Flow, Sleep, WaitDial
from holdfast.aio.client_driver import run_client
from holdfast.backends.connections.throttle import Throttle
from holdfast.clock import now
from holdfast.errors import BackendUnavailable

LONG_S = 30.0


class Server:
    """Answers when it is told to."""

    def __init__(self, limit: int) -> None:
        self.throttle = Throttle(limit)
        self.asked: list[int] = []
        self.answers: dict[int, asyncio.Event] = {}

    def ask(self, number: int, timeout_s: float = LONG_S, wait_s: float = LONG_S) -> asyncio.Task[int]:
        self.answers[number] = asyncio.Event()
        flow = self.throttle.run(partial(self._send, number), timeout_s, now() + wait_s)
        return asyncio.ensure_future(run_client(flow, drain=True))

    def _send(self, number: int, deadline: float) -> Flow[int]:
        self.asked.append(number)
        while not self.answers[number].is_set():
            yield Sleep(0.001)
        return number


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_few_at_a_time_and_in_order() -> None:
    async def main() -> None:
        server = Server(2)
        tasks = [server.ask(number) for number in range(6)]
        await settled()
        assert server.asked == [0, 1]
        for number in (1, 0, 2, 3, 4, 5):
            server.answers[number].set()
            assert await tasks[number] == number
        assert server.asked == [0, 1, 2, 3, 4, 5]

    asyncio.run(main())


def test_who_is_cancelled_leaves_its_turn_to_the_next() -> None:
    async def main() -> None:
        server = Server(1)
        first, second, third = (server.ask(number) for number in range(3))
        await settled()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        server.answers[0].set()
        server.answers[2].set()
        assert await third == 2
        assert server.asked == [0, 2]
        assert await first == 0

    asyncio.run(main())


class Woken:
    def set(self) -> None:
        pass


def stepped(flow: Flow[int], until: type, clock_s: float) -> object:
    """Go on by hand until it yields such an op."""
    answer: object = None
    while not isinstance(op := flow.send(answer), until):
        answer = clock_s if op is NOW else Woken()
    return op


def test_while_others_are_answered_it_waits_longer_than_a_request_may_take() -> None:
    throttle = Throttle(1)

    def send(deadline: float) -> Flow[int]:
        yield Sleep(0.0)
        return 1

    first, second, third = (throttle.run(send, 2.0, 100.0) for _ in range(3))
    stepped(first, Sleep, 0.0)
    stepped(second, WaitDial, 0.0)
    pause = stepped(third, WaitDial, 0.0)
    assert isinstance(pause, WaitDial)
    assert pause.timeout == 2.0
    with pytest.raises(StopIteration):
        first.send(None)
    stepped(third, WaitDial, 2.0)  # one was answered, so it goes on waiting
    with pytest.raises(BackendUnavailable, match="none of those"):
        stepped(third, WaitDial, 4.0)
    stepped(second, Sleep, 4.0)


def test_it_waits_no_longer_than_its_caller_has_time() -> None:
    async def main() -> None:
        server = Server(1)
        stuck = server.ask(0)
        await settled()
        with pytest.raises(BackendUnavailable, match="none of those"):
            await server.ask(1, wait_s=0.05)
        server.answers[0].set()
        assert await stuck == 0

    asyncio.run(main())
