"""The wires of a lock table tell the server what it can not know: who had to wait, and where to push."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.backends.queue_backend import Push, Release, Take, Taken
from holdfast.backends.relational.error_mapping import ErrorMapping
from holdfast.backends.relational.replies import Released
from holdfast.backends.relational.wires.aio_table import AsyncTableWire
from holdfast.backends.relational.wires.ports import Answer, AsyncEar, Heard
from holdfast.backends.relational.wires.table import TableWire
from holdfast.model import Claim, LockSpec

WAITS, GOES = Claim(LockSpec("door"), "waits", "actor"), Claim(LockSpec("door"), "goes", "actor")


class Greeting(NamedTuple):
    pooled: bool = False


class Link:
    """Blocking and asyncio: `door` is held by somebody, until its release grants it to whoever waits."""

    greeting = Greeting()
    told_id = 1
    under_way = None
    closed = False
    ended = False

    def look(self) -> bool:
        return True

    def ask(self, order: Any, more: Any) -> Any:
        reply = reply_to(order)
        if isinstance(more, float):
            return reply
        answer: Answer = more
        answer(reply, None)
        return None

    def say(self, text: bytes, timeout: float) -> None: ...

    def start(self, order: Any) -> None: ...

    def poll(self, timeout: float) -> None: ...

    def hang_up(self) -> None: ...

    def fail(self, why: str) -> None: ...

    def disown(self) -> None: ...

    def close(self) -> None: ...


def reply_to(order: tuple[Any, Any, bool]) -> Any:
    request = order[0]
    if isinstance(request, Take):
        return [Taken(0, 1.0, 1)]
    return Released(True, [("waits", 7)] if request.claim is GOES else [])


class Dialling:
    timeout = 5.0
    translation = ErrorMapping("a server", {}, frozenset())

    def dial(self, words: Sequence[bytes] = ()) -> Link:
        return Link()

    async def dial_async(self, words: Sequence[bytes] = ()) -> Link:
        return Link()


class Codec:
    """Writes an order as what it was asked for, and keeps all of them."""

    def __init__(self) -> None:
        self.orders: list[tuple[Any, Any, bool]] = []

    def write(self, request: Any, wake: Any = None, waited: bool = False) -> Any:
        self.orders.append((request, wake, waited))
        return self.orders[-1]

    def tidy(self, most: int) -> Any:
        raise AssertionError("nothing is there to be tidied")


class Ear(Link):
    wake = "here"

    def hear(self, timeout: float) -> list[tuple[str, int]]:
        return []

    def set(self) -> None: ...


class Hearing:
    def listen(self) -> Ear:
        return Ear()

    async def listen_async(self, heard: Heard) -> AsyncEar:
        return AsyncEar("here", Link())


EXPECTED = [
    (Take((WAITS,), True), None, False),
    (Take((WAITS,), True), "here", False),  # once somebody has to wait, there are ears
    (Release(GOES, 0.0), "here", False),
    (Release(WAITS, 0.0), "here", True),
]


def test_a_release_says_whether_it_was_waited_for() -> None:
    codec = Codec()
    wire = TableWire(Dialling(), lambda: codec, Hearing)
    wire.call(Take((WAITS,), True), 5.0)
    wire.call(Release(GOES, 0.0), 5.0)
    assert wire.wait("waits", 60.0) == Push(7), "told by the reply to the release"
    wire.call(Release(WAITS, 0.0), 5.0)
    wire.close()
    assert codec.orders == EXPECTED


def test_a_release_says_whether_it_was_waited_for_by_tasks() -> None:
    codec = Codec()

    async def main() -> None:
        wire = AsyncTableWire(Dialling(), lambda: codec, Hearing)
        await wire.open()
        await wire.call(Take((WAITS,), True), 5.0)
        await wire.call(Release(GOES, 0.0), 5.0)
        assert await wire.wait("waits", 60.0) == Push(7), "told by the reply to the release"
        await wire.call(Release(WAITS, 0.0), 5.0)
        await wire.close()

    asyncio.run(main())
    assert codec.orders == EXPECTED
