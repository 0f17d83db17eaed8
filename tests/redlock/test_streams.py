"""A stream of asyncio: replies wake their tasks in the very callback that has read them, whatever these do then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from holdfast.backends.redlock.wires.node.reply import Turn
from holdfast.backends.redlock.wires.node.stream import Stream
from holdfast.errors import OutcomeUnknown

MARK: ContextVar[str] = ContextVar("mark", default="")


class Pipe:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def start(self, on_data: Callable[[bytes], None], on_end: Callable[[Exception | None], None]) -> None:
        self.on_data, self.on_end = on_data, on_end

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def alive(self) -> bool:
        return True

    def close(self) -> None:
        pass


async def settled() -> None:
    """Everything that is ready has run."""
    for _ in range(3):
        await asyncio.sleep(0)


async def from_the_loop(read: Callable[[bytes], None], data: bytes) -> None:
    """As the loop would call it: from no task."""
    read_it = asyncio.get_running_loop().create_future()

    def call() -> None:
        try:
            read(data)
            read_it.set_result(None)
        except BaseException as error:  # noqa: BLE001  it is what the test wants to see
            read_it.set_exception(RuntimeError(type(error).__name__))

    asyncio.get_running_loop().call_soon(call)
    await read_it


def play(scene: Callable[[Pipe, Stream], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        pipe = Pipe()
        await scene(pipe, Stream(pipe))

    asyncio.run(main())


def test_replies_of_one_read_wake_their_tasks_in_order_and_what_these_send_leaves_in_one_write() -> None:
    async def scene(pipe: Pipe, stream: Stream) -> None:
        told: list[Any] = []

        async def caller(number: int) -> None:
            MARK.set(str(number))
            told.append((MARK.get(), await stream.ask(b"a%d " % number, 5.0)))
            told.append((MARK.get(), await stream.ask(b"b%d " % number, 5.0)))

        tasks = [asyncio.ensure_future(caller(number)) for number in range(3)]
        await settled()
        assert b"".join(pipe.written) == b"a0 a1 a2 "
        pipe.written.clear()
        woken: list[Any] = []

        def read(data: bytes) -> None:
            pipe.on_data(data)
            woken.extend(told)  # before the loop has turned

        await from_the_loop(read, b":10\r\n:11\r\n:12\r\n")
        assert woken == [("0", 10), ("1", 11), ("2", 12)]
        assert pipe.written == [b"b0 b1 b2 "]
        await from_the_loop(pipe.on_data, b":20\r\n:21\r\n:22\r\n")
        await asyncio.gather(*tasks)
        assert told[3:] == [("0", 20), ("1", 21), ("2", 22)]

    play(scene)


def test_a_woken_task_may_close_the_stream() -> None:
    async def scene(pipe: Pipe, stream: Stream) -> None:
        async def closer() -> Any:
            value = await stream.ask(b"a", 5.0)
            stream.close()
            return value

        async def other() -> Any:
            return await stream.ask(b"b", 5.0)

        tasks = [asyncio.ensure_future(work()) for work in (closer, other, other)]
        await settled()
        await from_the_loop(pipe.on_data, b":1\r\n:2\r\n")
        first, *others = await asyncio.gather(*tasks, return_exceptions=True)
        assert first == 1
        assert [type(each) for each in others] == [OutcomeUnknown, OutcomeUnknown]

    play(scene)


def test_an_interruption_in_one_task_does_not_keep_the_others_from_their_replies() -> None:
    async def scene(pipe: Pipe, stream: Stream) -> None:
        async def struck() -> None:
            await stream.ask(b"a", 5.0)
            raise KeyboardInterrupt

        async def other() -> Any:
            return await stream.ask(b"b", 5.0)

        first, second = asyncio.ensure_future(struck()), asyncio.ensure_future(other())
        await settled()
        with pytest.raises(RuntimeError, match="KeyboardInterrupt"):
            await from_the_loop(pipe.on_data, b":1\r\n:2\r\n")
        assert await second == 2
        assert isinstance(first.exception(), KeyboardInterrupt)

    play(scene)


def test_a_cancelled_task_is_told_when_its_reply_has_come() -> None:
    async def scene(pipe: Pipe, stream: Stream) -> None:
        task = asyncio.ensure_future(_await(stream.ask(b"a", 5.0)))
        await settled()
        task.cancel()
        await settled()
        assert not task.done()
        await from_the_loop(pipe.on_data, b":1\r\n")
        with pytest.raises(asyncio.CancelledError):
            await task

    play(scene)


def test_a_turn_is_given_up_at_once() -> None:
    async def scene(pipe: Pipe, stream: Stream) -> None:
        turn = Turn(asyncio.get_running_loop())
        task = asyncio.ensure_future(_await(turn))
        await settled()
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert turn.done()

    play(scene)


def test_what_was_answered_before_it_was_awaited_is_there() -> None:
    async def scene(pipe: Pipe, stream: Stream) -> None:
        first, second = stream.ask(b"a", 5.0), stream.ask(b"b", 5.0)
        await from_the_loop(pipe.on_data, b":1\r\n:2\r\n")
        assert [await second, await first] == [2, 1]

    play(scene)


async def _await(reply: Any) -> Any:
    return await reply
