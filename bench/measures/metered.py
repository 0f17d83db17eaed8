"""What counting costs a pair of acquire and release: with the built-in counters, and without any observer.

1. Two coordinators of one process take short turns on the memory engine, which has the cheapest pair there is.
2. CPU time of the thread, of the quiet tenth of all turns: other programs on the machine add to a turn and never take
   away, and a difference of two medians would be mostly theirs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bench.model import Target
from bench.outcomes import Figure
from bench.progress import say
from bench.stats import percentile

LIMIT_US = 3.0
PAIR_COUNT = 100
"""Pairs in one turn."""
TURN_COUNT = {True: 300, False: 1500}
QUIET_RATIO = 0.1

TakePairs = Callable[[], object]


def figures(target: Target, quick: bool) -> list[Figure]:
    """For threads and for tasks."""
    say(f"metered: {TURN_COUNT[quick]} turns of {PAIR_COUNT} pairs, with and without counters")
    with asyncio.Runner() as runner:
        return [_figure("threads", *_in_threads(), quick), _figure("asyncio", *_in_tasks(runner), quick)]


def _figure(body: str, counted: TakePairs, plain: TakePairs, quick: bool) -> Figure:
    turns: tuple[list[float], list[float]] = ([], [])
    for _ in range(TURN_COUNT[quick]):
        for pairs, taken in zip((counted, plain), turns, strict=True):
            began = time.thread_time_ns()
            pairs()
            taken.append((time.thread_time_ns() - began) / PAIR_COUNT / 1e3)
    with_counters, without = (percentile(taken, QUIET_RATIO) for taken in turns)
    added = with_counters - without
    return Figure(
        f"counting adds to a pair ({body})",
        f"≤ {LIMIT_US:g} µs: {added:.2f} µs, {with_counters:.1f} with and {without:.1f} without",
        added <= LIMIT_US,
    )


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
