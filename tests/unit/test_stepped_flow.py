"""A flow that runs in callbacks of the loop: whom it tells goes on at once, and Ctrl-C there is lost on nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast._core.flow import NOW, Flow, Sleep, Tell
from holdfast.aio.stepped_flow import SteppedFlow
from holdfast.aio.stepped_future import SteppedFuture


def test_whom_it_tells_goes_on_before_it_does() -> None:
    order: list[str] = []

    def flow(waiting: list[tuple[Any, object]]) -> Flow[None]:
        yield NOW
        yield Tell(waiting)
        order.append("flow")
        yield Sleep(0.0)
        order.append("end")

    async def one(reply: SteppedFuture) -> None:
        order.append(str(await reply))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        replies = [SteppedFuture(loop) for _ in range(2)]
        tasks = [asyncio.ensure_future(one(reply)) for reply in replies]
        await asyncio.sleep(0)
        SteppedFlow(flow([(replies[0], "first"), (replies[1], "second")]), loop).start()
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert order == ["first", "second", "flow", "end"]


def test_an_interruption_of_one_who_is_told_does_not_keep_the_others_waiting() -> None:
    told: list[str] = []
    ended: list[bool] = []

    def flow(waiting: list[tuple[Any, object]]) -> Flow[None]:
        yield Tell(waiting)
        ended.append(True)

    class Struck:
        def answer(self, value: object) -> None:
            raise KeyboardInterrupt

        set_result = answer

    async def one(reply: SteppedFuture) -> None:
        told.append(str(await reply))

    loop = asyncio.new_event_loop()
    try:
        reply = SteppedFuture(loop)
        task = loop.create_task(one(reply))
        loop.call_soon(SteppedFlow(flow([(Struck(), ""), (reply, "second")]), loop).start)
        with pytest.raises(KeyboardInterrupt):
            loop.run_forever()
        loop.run_until_complete(asyncio.wait_for(asyncio.shield(task), 10))
    finally:
        loop.close()
    assert told == ["second"]
    assert ended == [True]


def test_a_failure_is_told_to_the_loop() -> None:
    def flow() -> Flow[None]:
        yield NOW
        raise ValueError("a bug")

    async def main() -> list[dict[str, Any]]:
        loop = asyncio.get_running_loop()
        found: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: found.append(context))
        SteppedFlow(flow(), loop).start()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return found

    [context] = asyncio.run(main())
    assert isinstance(context["exception"], ValueError)
