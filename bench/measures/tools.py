"""What is built on tokens beside the least statements that do the same by hand, and beside peers.

1. By hand means: what a careful program would send, and no more. No renewal, no takeover, no fence, no comparison of
   payloads or of event ids, no retry: what is left out is what the tools are for.
2. In turns of a tenth of a second, so that all meet the same machine, in an order that is rotated each round; a ratio
   is the median of the ratios of single rounds. CPU is that of this process, in which clients and workers are.
3. Once: claim the key where there is none, write the result where the claim stands; a replay reads it.
   Append: one event at the next version of a stream, committed. Tell and handle: a message is kept, then taken with the
   new state in one transaction; told by one thread and handled by a worker of the same process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.model import Target
from bench.progress import say
from bench.stats import middle, ratios
from bench.tool_model import ORDER, ToolContender
from bench.tool_outcomes import ToolResult

TURN_S = 0.1
ROUND_COUNT = {True: 7, False: 31}
"""For a quick run, and for a full one."""
RESULT = '{"charged":100}'
"""What the work of a key results in."""
TOLD_COUNT = 50
"""Messages that are told at once, before the last of them is waited for."""


@dataclass(slots=True)
class ToolLane:
    """One contender's turns so far: seconds for one."""

    contender: ToolContender
    call: Callable[[], object]
    taken: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    done: int = 0

    def run(self, seconds: float) -> None:
        clock, count = time.perf_counter, 0
        cpu, begin = time.process_time(), clock()
        while (now := clock()) - begin < seconds:
            self.call()
            count += self.contender.count
        self.taken.append((now - begin) / count)
        self.cpu.append((time.process_time() - cpu) / count)
        self.done += count


def measure(contenders: Sequence[ToolContender], target: Target, rounds: int) -> list[ToolResult]:
    """All ways of a tool are open at the same time, one tool after the other."""
    found: list[ToolResult] = []
    for tool in ORDER:
        there = [each for each in contenders if each.tool == tool]
        if there:
            say(f"{tool}: {', '.join(each.name for each in there)}")
            found += _measure(there, target, rounds)
    return found


def _measure(contenders: Sequence[ToolContender], target: Target, rounds: int) -> list[ToolResult]:
    with ExitStack() as stack:
        lanes = [ToolLane(each, stack.enter_context(each.open(target))) for each in contenders]
        for lane in lanes:
            lane.call()
        for number in range(rounds):
            start = number % len(lanes)
            for lane in lanes[start:] + lanes[:start]:
                lane.run(TURN_S)
    floor = next(lane for lane in lanes if lane.contender.role == "floor")
    ours = next(lane for lane in lanes if lane.contender.role == "holdfast")
    return [
        ToolResult(
            tool=lane.contender.tool,
            contender=lane.contender.name,
            role=lane.contender.role,
            ratio=ratios(lane.taken, floor.taken),
            ratio_ours=ratios(lane.taken, ours.taken),
            ratio_cpu=ratios(lane.cpu, floor.cpu),
            taken=middle(lane.taken),
            cpu=middle(lane.cpu),
            done=lane.done,
            note=lane.contender.note,
        )
        for lane in lanes
    ]
