"""Uncontended pair: take and release a free lock, again and again, by one caller.

All contenders live in one process and take turns of a tenth of a second, in an order that is rotated each
round, so that drift of the machine falls on all of them alike. Each pair is timed by itself; CPU is that of
the whole process over the turn, so a library's background thread is on its account.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from bench.model import Contender, Target
from bench.outcomes import PairResult
from bench.progress import say
from bench.stats import middle, percentile, ratios

Samples: TypeAlias = list[int]
TakeTurn: TypeAlias = Callable[[float, int], Samples]
SAMPLE_LIMIT_COUNT = 200_000
"""Pairs in one turn, at most."""
WARM_UP_S = 0.02


@dataclass(slots=True)
class Lane:
    """One contender's turns so far."""

    contender: Contender
    turn: TakeTurn
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    pairs: int = 0

    def run(self, seconds: float) -> None:
        cpu = time.process_time()
        samples = self.turn(seconds, SAMPLE_LIMIT_COUNT)
        cpu = time.process_time() - cpu
        self.p50.append(percentile(samples, 0.5) / 1e9)
        self.p99.append(percentile(samples, 0.99) / 1e9)
        self.cpu.append(cpu / len(samples))
        self.pairs += len(samples)


def measure(contenders: Sequence[Contender], target: Target, rounds: int, turn: float) -> list[PairResult]:
    """The floor among the contenders is the unit."""
    with ExitStack() as stack:
        lanes = [Lane(each, stack.enter_context(turns(each, target))) for each in contenders]
        for lane in lanes:
            lane.turn(WARM_UP_S, SAMPLE_LIMIT_COUNT)
        for number in range(rounds):
            say(f"pair: round {number + 1} of {rounds}, {len(lanes)} contenders")
            start = number % len(lanes)
            for lane in lanes[start:] + lanes[:start]:
                lane.run(turn)
    floor = next(lane for lane in lanes if lane.contender.role == "floor")
    return [
        PairResult(
            contender=lane.contender.name,
            role=lane.contender.role,
            p50=middle(lane.p50),
            p99=middle(lane.p99),
            cpu=middle(lane.cpu),
            ratio=ratios(lane.p50, floor.p50),
            ratio_p99=ratios(lane.p99, floor.p99),
            ratio_cpu=ratios(lane.cpu, floor.cpu),
            pairs=lane.pairs,
            turns=rounds,
        )
        for lane in lanes
    ]


def turns(contender: Contender, target: Target) -> AbstractContextManager[TakeTurn]:
    if contender.async_pair is not None:
        return _async_turns(contender, target)
    return _sync_turns(contender, target)


@contextmanager
def _sync_turns(contender: Contender, target: Target) -> Iterator[TakeTurn]:
    with open_pair(contender, target) as pair:

        def turn(seconds: float, limit: int) -> Samples:
            clock = time.perf_counter_ns
            samples: Samples = []
            now = clock()
            end = now + int(seconds * 1e9)
            while now < end and len(samples) < limit:
                begin = clock()
                pair()
                now = clock()
                samples.append(now - begin)
            return samples

        yield turn


@contextmanager
def open_pair(contender: Contender, target: Target) -> Iterator[Callable[[], object]]:
    """The contender's own pair, or one made of its `WorkerLock`."""
    if contender.pair is not None:
        with contender.pair(target) as pair:
            yield pair
        return
    assert contender.lock_factory is not None
    with contender.lock_factory(target, "pair") as new_worker_lock:
        worker_lock = new_worker_lock()
        take, release = worker_lock.take, worker_lock.release

        def both() -> None:
            take()
            release()

        yield both


@contextmanager
def _async_turns(contender: Contender, target: Target) -> Iterator[TakeTurn]:
    assert contender.async_pair is not None
    with asyncio.Runner() as runner:
        opened = contender.async_pair(target)
        pair = runner.run(opened.__aenter__())

        async def turn(seconds: float, limit: int) -> Samples:
            clock = time.perf_counter_ns
            samples: Samples = []
            now = clock()
            end = now + int(seconds * 1e9)
            while now < end and len(samples) < limit:
                begin = clock()
                await pair()
                now = clock()
                samples.append(now - begin)
            return samples

        try:
            yield lambda seconds, limit: runner.run(turn(seconds, limit))
        finally:
            runner.run(opened.__aexit__(None, None, None))
