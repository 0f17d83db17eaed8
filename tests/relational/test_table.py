"""The client of a lock table tells the server what it cannot know: who had to wait, and where to push."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast._core.flow import Flow
from holdfast.aio.client_driver import run_client
from holdfast.backends.connections.multiplexer import Pending
from holdfast.backends.queue_backend import Push, Release, Take, Taken
from holdfast.backends.relational.connection import Request
from holdfast.backends.relational.connector import OpeningConnections
from holdfast.backends.relational.error_mapping import ErrorMapping
from holdfast.backends.relational.notifications import Heard
from holdfast.backends.relational.replies import Released
from holdfast.backends.relational.table_client import TableClient
from holdfast.clock import now
from holdfast.model import Claim, LockSpec
from holdfast.sync.client_driver import Monitor

WAITS, GOES = Claim(LockSpec("door"), "waits", "actor"), Claim(LockSpec("door"), "goes", "actor")


class Greeting(NamedTuple):
    pooled: bool = False


class FakeConnection:
    """`door` is held by somebody, until its release grants it to whoever waits."""

    greeting = Greeting()
    number = 1
    heard_at = 0.0
    closed = False

    def readable(self) -> bool:
        return False

    def catch_up(self) -> Flow[bool]:
        yield from ()
        return True

    def start(self, order: Any) -> Request:
        request = Request(order)
        request.value, request.done = reply_to(order), True
        return request

    def ask(self, order: Any, deadline: float) -> Flow[Any]:
        return (yield from self.finish(self.start(order), deadline))

    def finish(self, request: Request, deadline: float) -> Flow[Any]:
        yield from ()
        return request.result()

    def until(self, request: Pending, deadline: float) -> Flow[bool]:
        yield from ()
        return request.done

    def fail(self, why: str) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def reply_to(order: tuple[Any, Any, bool]) -> Any:
    request = order[0]
    if isinstance(request, Take):
        return [Taken(0, 1.0, 1)]
    return Released(True, [("waits", Push(7))] if request.claim is GOES else [])


class FakeConnector:
    timeout_s = 5.0
    errors = ErrorMapping("a server", {}, frozenset())

    def __init__(self) -> None:
        self.opening = OpeningConnections()

    def connect(self, deadline: float) -> Flow[FakeConnection]:
        yield from ()
        return FakeConnection()


class FakeCodec:
    """Writes an order as what it was asked for, and keeps all of them."""

    def __init__(self) -> None:
        self.orders: list[tuple[Any, Any, bool]] = []

    def write(self, request: Any, wake: Any = None, waited: bool = False) -> Any:
        self.orders.append((request, wake, waited))
        return self.orders[-1]

    def tidy(self, most: int) -> Any:
        raise AssertionError("nothing is there to be tidied")


class FakeListener:
    wake = "here"
    closed = False

    def until(self, pending: Pending, deadline: float) -> Flow[bool]:
        raise AssertionError("nothing is to be heard")

    def finish(self, pending: Pending) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def listen(beside: Callable[[], int], heard: Heard, deadline: float) -> Flow[FakeListener]:
    yield from ()
    return FakeListener()


EXPECTED = [
    (Take((WAITS,), True), None, False),
    (Take((WAITS,), True), "here", False),  # once somebody has to wait, there is a listener
    (Release(GOES, 0.0), "here", False),
    (Release(WAITS, 0.0), "here", True),
]


def story(client: TableClient) -> Flow[None]:
    client._until_tidy = 100
    deadline = now() + 60.0
    yield from client.call(Take((WAITS,), True), deadline)
    yield from client.call(Release(GOES, 0.0), deadline)
    assert (yield from client.wait("waits", deadline)) == Push(7), "told by the reply to the release"
    yield from client.call(Release(WAITS, 0.0), deadline)
    yield from client.close(deadline)


def new_client(codec: FakeCodec) -> TableClient:
    return TableClient(FakeConnection(), FakeConnector(), lambda: listen, lambda: codec)


def test_a_release_says_whether_it_was_waited_for() -> None:
    codec = FakeCodec()
    Monitor().run(story(new_client(codec)))
    assert codec.orders == EXPECTED


def test_a_release_says_whether_it_was_waited_for_by_tasks() -> None:
    codec = FakeCodec()
    asyncio.run(run_client(story(new_client(codec)), drain=True))
    assert codec.orders == EXPECTED


def test_a_forked_child_listens_elsewhere() -> None:
    """On the parent's channel it would be told by its releases what the parent's waiters wait to hear."""
    made: list[None] = []

    def make() -> Any:
        made.append(None)
        return listen

    client = TableClient(FakeConnection(), FakeConnector(), make, FakeCodec)
    client.after_fork_in_child()
    assert len(made) == 2
