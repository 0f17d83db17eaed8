"""One attempt for many: whatever becomes of it, the next can begin."""

from __future__ import annotations

import asyncio

import pytest

from holdfast._core.flow import Flow, Sleep
from holdfast.aio.client_driver import run_client
from holdfast.backends.connections.single_flight import SingleFlight
from holdfast.clock import now


def test_an_attempt_that_was_cancelled_is_not_waited_for_by_the_next() -> None:
    """Some programs cancel all tasks of their loop, and go on."""

    async def main() -> str:
        pauses = [30.0, 0.0]

        def attempt(deadline: float) -> Flow[str]:
            yield Sleep(pauses.pop(0))
            return "done"

        flight = SingleFlight(attempt, 0.0)
        waiting = asyncio.ensure_future(run_client(flight.wait(now() + 30), drain=False))
        await asyncio.sleep(0.01)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await run_client(flight.wait(now() + 20), drain=False)

    assert asyncio.run(main()) == "done"
