"""Waiters: what a hand-over costs as the line gets longer.

Many tasks of one process want one lock; each asks again as soon as it has let go. Everything is bounded in time: what
was not seen by then is NaN. The CPU time of the engine is that of all processes which its start has left running.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.model import Contender, Target
from bench.outcomes import WaitersResult
from bench.progress import say
from bench.stats import percentile

LONGEST_ROUND_S = 120.0
LONGEST_CANCEL_S, LONGEST_PEERS_CANCEL_S = 30.0, 3.0


@dataclass(frozen=True, slots=True)
class WaitersPlan:
    """How many waiters, and for how long they are watched after their first round."""

    waiters: tuple[int, ...]
    seconds: float
    peers_up_to: int
    """Peers poll: with more of them nothing is to be seen."""


def measure(contenders: Sequence[Contender], target: Target, plan: WaitersPlan) -> list[WaitersResult]:
    found: list[WaitersResult] = []
    for each in contenders:
        fewest: WaitersResult | None = None
        for waiters in plan.waiters:
            if each.role == "peer" and waiters > plan.peers_up_to:
                continue
            say(f"waiters: {each.name}, {waiters} waiters")
            result = asyncio.run(_watch(each, target, waiters, plan.seconds, fewest))
            fewest = fewest or result
            found.append(result)
    return found


async def _watch(
    contender: Contender, target: Target, waiters: int, seconds: float, fewest: WaitersResult | None
) -> WaitersResult:
    assert contender.task_locks is not None
    clock = time.perf_counter
    gaps: list[float] = []
    once: set[int] = set()
    all_had_it = asyncio.Event()
    released = math.nan

    async with contender.task_locks(target) as new_lock:

        async def want(number: int) -> None:
            nonlocal released
            while True:
                async with new_lock():
                    gaps.append(clock() - released)
                    once.add(number)
                    if len(once) == waiters:
                        all_had_it.set()
                    released = clock()

        began = clock()
        tasks = [asyncio.create_task(want(number)) for number in range(waiters)]
        for task in tasks:
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # whatever a peer makes of it
        try:
            await asyncio.wait_for(all_had_it.wait(), LONGEST_ROUND_S)
            first_round = clock() - began
        except TimeoutError:
            first_round = math.nan
        gaps.clear()
        cpu, watched = children_cpu(), clock()
        await asyncio.sleep(seconds)
        cpu, watched = children_cpu() - cpu, clock() - watched
        grants, gap = len(gaps), percentile(gaps, 0.5)
        cancelled = clock()
        for task in tasks:
            task.cancel()
        limit = LONGEST_PEERS_CANCEL_S if contender.role == "peer" else LONGEST_CANCEL_S
        _, left = await asyncio.wait(tasks, timeout=limit)
        cancel = math.nan if left else clock() - cancelled
    server_cpu = cpu / grants if grants and cpu else math.nan
    return WaitersResult(
        contender=contender.name,
        role=contender.role,
        waiters=waiters,
        first_round=first_round,
        rate=grants / watched,
        gap_p50=gap,
        gap_ratio=gap / fewest.gap_p50 if fewest else 1.0,
        cancel=cancel,
        server_cpu=server_cpu,
        server_cpu_ratio=server_cpu / (fewest.server_cpu if fewest else server_cpu),
    )


def children_cpu() -> float:
    """CPU seconds of all processes that descend from this one."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    words = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = (int(words[1]), int(words[11]) + int(words[12]))
    family = {os.getpid()}
    while True:
        more = {pid for pid, (parent, _) in parents.items() if parent in family} - family
        if not more:
            break
        family |= more
    ticks = sum(parents[pid][1] for pid in family if pid in parents and pid != os.getpid())
    return ticks / os.sysconf("SC_CLK_TCK")
