"""Contended hand-off: many workers, one lock, and what happens between one's release and the next one's
grant.

With a hold of 0 every worker asks again at once: the lock is the bottleneck, and a lock without a queue is
granted to the worker that has just released it. With a hold of 5 ms a worker stays away for 20 ms after its release,
so the next holder is one that was waiting: the gap is the price of waking it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from bench.measures.worker_pool import Close, Go, Open, Pool, WorkerFailed, holds_of
from bench.model import Contender, Engine, Layout, Measure, Target
from bench.outcomes import Absent, HandoffResult
from bench.progress import say
from bench.stats import Hold, fairness, gaps, held, middle, percentile, ratios

REST = {0.0: 0.0, 0.005: 0.02}
"""Seconds that a worker stays away after holding for so long."""
LEAD_S = 0.05
"""From the command to the common beginning."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many turns, and how long. Peers get fewer: no figure that must be met hangs on their tails."""

    turn: float
    """Seconds, with a hold of 0: thousands of grants."""
    holding_turn: float
    """Seconds, with a hold of some milliseconds: a hundred grants, so it takes longer to see a tail."""
    turns: int
    peer_turns: int
    peers_up_to: int = 1_000
    """Workers: in larger layouts there are no peers, whose polling takes long to come to an end."""

    def seconds(self, hold: float) -> float:
        return self.holding_turn if hold else self.turn

    def turns_of(self, contender: Contender) -> int:
        return self.turns if contender.role in ("floor", "holdfast") else self.peer_turns


@dataclass(slots=True)
class Tally:
    """One contender's turns in one layout."""

    rate: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    handed: list[float] = field(default_factory=list)
    min_share: list[float] = field(default_factory=list)
    max_share: list[float] = field(default_factory=list)
    regrants: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    commands: list[float] = field(default_factory=list)
    longest_wait: float = 0.0
    overlaps: int = 0
    grants: int = 0

    def add(self, holds: Sequence[Hold], workers: int, begin: float, end: float, commands: int | None) -> None:
        found = gaps(holds, until=end)
        counted = [hold for hold in holds if hold.granted < end]
        spread = fairness(counted, workers)
        self.rate.append(len(counted) / (end - begin))
        self.waited += found.waited
        self.handed += found.handed
        self.overlaps += found.overlaps
        self.min_share.append(spread.min_share)
        self.max_share.append(spread.max_share)
        self.regrants.append(spread.regrants)
        self.held.append(held(counted, begin, end))
        self.longest_wait = max([self.longest_wait, *(hold.granted - hold.asked for hold in holds)])
        self.grants += len(counted)
        if commands is not None and holds:
            self.commands.append(commands / len(holds))


def measure(
    engine: Engine,
    contenders: Sequence[Contender],
    target: Target,
    plan: Plan,
    holds: Sequence[float] = tuple(REST),
    label: Measure = "handoff",
) -> tuple[list[HandoffResult], list[Absent]]:
    """Every layout of the engine, with a hold of 0 and of 5 ms."""
    results: list[HandoffResult] = []
    absent: dict[str, Absent] = {}
    left_out: list[Absent] = []
    peers = [each for each in contenders if each.role == "peer"]
    crews = Crews(max(layout.processes for layout in engine.layouts), engine.name, target)
    try:
        for layout in engine.layouts:
            crowd = layout.workers > plan.peers_up_to
            left_out += [Absent(each.name, label, f"{layout}: not in a quick run") for each in peers if crowd]
            for hold in holds:
                case = Case(engine, target, layout, hold, label)
                entered = [each for each in contenders if each.name not in absent and not (crowd and each in peers)]
                results += _rounds(case, entered, crews, plan, absent)
    finally:
        crews.end()
    return results, [*left_out, *absent.values()]


class Crews:
    """The pool, and a new one after a contender has broken it."""

    def __init__(self, processes: int, engine: str, target: Target) -> None:
        self._start = partial(Pool, processes, engine, target)
        self.pool = self._start()

    def renew(self) -> None:
        self.pool.end()
        self.pool = self._start()

    def end(self) -> None:
        self.pool.end()


@dataclass(frozen=True, slots=True)
class Case:
    """One table of the report."""

    engine: Engine
    target: Target
    layout: Layout
    hold: float
    label: Measure = "handoff"

    def __str__(self) -> str:
        return f"{self.layout}, hold {self.hold * 1e3:.0f} ms"


def _rounds(
    case: Case, contenders: Sequence[Contender], crews: Crews, plan: Plan, absent: dict[str, Absent]
) -> list[HandoffResult]:
    """All contenders take turns. One that fails is put into `absent` and out of this and all later cases."""
    tallies = {each.name: Tally() for each in contenders}
    for number in range(plan.turns):
        say(f"{case.label}: {case}, round {number + 1} of {plan.turns}")
        for each in contenders:
            if each.name in absent or number >= plan.turns_of(each):
                continue
            try:
                _turn(case, each, plan.seconds(case.hold), crews.pool, tallies[each.name])
            except WorkerFailed as error:
                absent[each.name] = Absent(each.name, case.label, f"{case}: {error}")
                crews.renew()
    floor = next(each for each in contenders if each.role == "floor")
    if floor.name in absent:
        raise WorkerFailed(f"the floor failed, and all ratios with it: {absent[floor.name].reason}")
    return [
        _result(each, case, tallies[each.name], tallies[floor.name]) for each in contenders if each.name not in absent
    ]


def _turn(case: Case, contender: Contender, seconds: float, pool: Pool, tally: Tally) -> None:
    processes = case.layout.processes
    name = re.sub("[^a-z0-9]+", "-", f"{case.label} {case}")
    pool.ask(Open(contender.name, name, case.layout.threads), processes)
    counter = case.engine.commands if contender.counted else None
    before = counter(case.target) if counter else 0
    begin = time.monotonic() + LEAD_S
    end = begin + seconds
    answers = pool.ask(Go(begin, end, case.hold, REST[case.hold]), processes)
    commands = counter(case.target) - before if counter else None
    pool.ask(Close(), processes)
    tally.add(holds_of(answers), case.layout.workers, begin, end, commands)


def _result(contender: Contender, case: Case, tally: Tally, floor: Tally) -> HandoffResult:
    return HandoffResult(
        contender=contender.name,
        role=contender.role,
        layout=str(case.layout),
        hold=case.hold,
        rate=middle(tally.rate),
        rate_ratio=ratios(tally.rate, floor.rate[: len(tally.rate)]),
        gap_p50=percentile(tally.waited, 0.5),
        gap_p99=percentile(tally.waited, 0.99),
        handed_p50=percentile(tally.handed, 0.5),
        handed_p99=percentile(tally.handed, 0.99),
        min_share=middle(tally.min_share),
        max_share=middle(tally.max_share),
        regrants=middle(tally.regrants),
        held=middle(tally.held),
        longest_wait=tally.longest_wait,
        overlaps=tally.overlaps,
        commands=middle(tally.commands) if tally.commands else None,
        grants=tally.grants,
    )
