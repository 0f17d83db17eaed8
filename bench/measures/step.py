"""A flow's step: what an algorithm pays for being a generator that a driver runs.

The same work is done twice in turns: by hand in a loop, and as ops of a flow through the driver. What one op
takes more than its work by hand is what the design adds to each request. The wire echoes: it costs one Python
call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench.outcomes import StepResult
from bench.progress import say
from bench.stats import middle, percentile


class Echo:
    """A wire without an engine behind it."""

    def call(self, request: Any, timeout: float) -> Any:
        return request

    def wait(self, owner: str, timeout: float) -> Any:
        return None

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...

    def close(self) -> None: ...


class AsyncEcho:
    """The same for asyncio."""

    async def call(self, request: Any, timeout: float) -> Any:
        return request

    async def wait(self, owner: str, timeout: float) -> Any:
        return None

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...

    async def close(self) -> None: ...


def measure(rounds: int, steps: int) -> list[StepResult]:
    """`rounds` turns of `steps` ops for each driver and op."""
    say(f"step: {rounds} rounds of {steps} ops")
    with asyncio.Runner() as runner:
        return [
            _compare(driver, op, by_hand, through, rounds, steps) for driver, op, by_hand, through in _cases(runner)
        ]


def _compare(
    driver: str,
    op: str,
    by_hand: Callable[[int], object],
    through: Callable[[int], object],
    rounds: int,
    steps: int,
) -> StepResult:
    taken: list[float] = []
    added: list[float] = []
    by_hand(steps)
    through(steps)
    for _ in range(rounds):
        work = _seconds(by_hand, steps)
        taken.append(_seconds(through, steps))
        added.append(taken[-1] - work)
    return StepResult(driver, op, middle(taken), percentile(taken, 0.99), middle(added), rounds * steps)


def _seconds(work: Callable[[int], object], steps: int) -> float:
    """Of one step."""
    begin = time.perf_counter()
    work(steps)
    return (time.perf_counter() - begin) / steps


Case = tuple[str, str, Callable[[int], object], Callable[[int], object]]


def _cases(runner: asyncio.Runner) -> list[Case]:
    import holdfast.aio.driver as aio
    import holdfast.sync.driver as sync
    from holdfast._core.flow import NOW, Call, Flow
    from holdfast.clock import now

    wire, async_wire = Echo(), AsyncEcho()

    def calls(steps: int) -> Flow[None]:
        for step in range(steps):
            yield Call(step, 1.0)

    def looks(steps: int) -> Flow[None]:
        for _ in range(steps):
            yield NOW

    def calls_by_hand(steps: int) -> None:
        for step in range(steps):
            wire.call(step, 1.0)

    def looks_by_hand(steps: int) -> None:
        for _ in range(steps):
            now()

    async def awaits_by_hand(steps: int) -> None:
        for step in range(steps):
            await async_wire.call(step, 1.0)

    return [
        ("sync", "Call", calls_by_hand, lambda steps: sync.run(calls(steps), wire)),
        ("sync", "Now", looks_by_hand, lambda steps: sync.run(looks(steps), wire)),
        (
            "asyncio",
            "Call",
            lambda steps: runner.run(awaits_by_hand(steps)),
            lambda steps: runner.run(aio.run(calls(steps), async_wire)),
        ),
    ]
