"""What counting and tracing cost a pair of acquire and release.

Counting: with the built-in counters, and without any observer. Tracing: switched on, with a recording provider of the
SDK that exports nothing, and off. Most of that price, three spans, is the library's.

1. Two coordinators of one process take short turns on the memory engine, which has the cheapest pair there is.
2. CPU time of the thread, of the quiet tenth of all turns: other programs on the machine add to a turn and never take
   away, and a difference of two medians would be mostly theirs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable

from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say
from bench.stats import percentile

LIMIT_US = 3.0
TRACED_LIMIT_US = 400.0
PAIR_COUNT = 100
"""Pairs in one turn."""
TURN_COUNT = {True: 300, False: 1500}
QUIET_RATIO = 0.1
FEWER_TURNS_COUNT = 10
"""Tracing costs so much more than counting that it is measured in a tenth of the turns."""

TakePairs = Callable[[], object]


def figures(target: Target, quick: bool) -> list[Figure]:
    """For threads and for tasks."""
    say(f"metered: {TURN_COUNT[quick]} turns of {PAIR_COUNT} pairs, with and without counters")
    with asyncio.Runner() as runner:
        bodies = {"threads": _in_threads(), "asyncio": _in_tasks(runner)}
        found = [_counting(body, *pairs, quick) for body, pairs in bodies.items()]
        if importlib.util.find_spec("opentelemetry.sdk") is None:
            return found
        return [*found, *(_tracing(body, counted, quick) for body, (counted, _) in bodies.items())]


def _counting(body: str, counted: TakePairs, plain: TakePairs, quick: bool) -> Figure:
    with_counters, without = _quiet_us((counted, plain), TURN_COUNT[quick])
    added = with_counters - without
    return Figure(
        f"counting adds to a pair ({body})",
        f"≤ {LIMIT_US:g} µs: {added:.2f} µs, {with_counters:.1f} with and {without:.1f} without",
        added <= LIMIT_US,
    )


def _tracing(body: str, counted: TakePairs, quick: bool) -> Figure:
    from opentelemetry.sdk.trace import TracerProvider

    from holdfast.observe import opentelemetry

    provider = TracerProvider()

    def traced() -> None:
        opentelemetry.trace(provider)
        try:
            counted()
        finally:
            opentelemetry.untrace()

    on, off = _quiet_us((traced, counted), TURN_COUNT[quick] // FEWER_TURNS_COUNT)
    return Figure(
        f"tracing adds to a pair ({body})",
        f"≤ {TRACED_LIMIT_US:g} µs where it is on: {on - off:.0f} µs, {on:.0f} with and {off:.1f} without",
        on - off <= TRACED_LIMIT_US,
    )


def _quiet_us(contenders: tuple[TakePairs, TakePairs], turn_count: int) -> tuple[float, float]:
    """Microseconds of a pair, of each, in the quiet tenth of the turns that they take."""
    turns: tuple[list[float], list[float]] = ([], [])
    for _ in range(turn_count):
        for pairs, taken in zip(contenders, turns, strict=True):
            began = time.thread_time_ns()
            pairs()
            taken.append((time.thread_time_ns() - began) / PAIR_COUNT / 1e3)
    first, second = (percentile(taken, QUIET_RATIO) for taken in turns)
    return first, second


def _in_threads() -> tuple[TakePairs, TakePairs]:
    import holdfast

    def of(counted: bool) -> TakePairs:
        locks = holdfast.connect("memory://metered")
        if not counted:
            locks._core.observer = locks._core.keeper.observer = None
        lock = locks.lock("orders/7")

        def pairs() -> None:
            for _ in range(PAIR_COUNT):
                lock.acquire().release()

        return pairs

    return of(True), of(False)


def _in_tasks(runner: asyncio.Runner) -> tuple[TakePairs, TakePairs]:
    import holdfast.aio

    async def connected() -> holdfast.aio.Coordinator:
        return await holdfast.aio.connect("memory://metered")

    def of(counted: bool) -> TakePairs:
        locks = runner.run(connected())
        if not counted:
            locks._core.observer = locks._core.keeper.observer = None
        lock = locks.lock("orders/7")

        async def pairs() -> None:
            for _ in range(PAIR_COUNT):
                await (await lock.acquire()).release()

        return lambda: runner.run(pairs())

    return of(True), of(False)
