"""How long to measure: what a full run does in minutes, and a quick one in a minute for each of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measures.handoff import Plan
from bench.measures.uses import UsePlan
from bench.measures.waiters import WaitersPlan


@dataclass(frozen=True, slots=True)
class Effort:
    """The bounds of every loop of a run."""

    name: str
    pair_rounds: int
    pair_turn: float
    handoff: Plan
    waiters: WaitersPlan
    names: UsePlan
    hot: UsePlan
    processes: tuple[int, ...]
    processes_plan: Plan
    leases: tuple[int, ...]
    ttl: float
    window: float
    lease_peers: bool
    import_rounds: int
    step_rounds: int
    steps: int


FULL = Effort(
    name="full",
    pair_rounds=21,
    pair_turn=0.1,
    handoff=Plan(turn=0.5, holding_turn=1.0, turns=5, peer_turns=2),
    waiters=WaitersPlan((10, 100, 1_000, 10_000), seconds=5.0, peers_up_to=100),
    names=UsePlan((100, 10_000, 1_000_000), seconds=120.0, clean_seconds=60.0, others_part=0.2),
    hot=UsePlan((10_000, 1_000_000), seconds=120.0, clean_seconds=30.0, others_part=0.1),
    processes=(1, 8, 32, 128),
    processes_plan=Plan(turn=3.0, holding_turn=3.0, turns=1, peer_turns=1),
    leases=(1_000, 10_000, 100_000),
    ttl=30.0,
    window=30.0,
    lease_peers=True,
    import_rounds=15,
    step_rounds=31,
    steps=20_000,
)
QUICK = Effort(
    name="quick",
    pair_rounds=5,
    pair_turn=0.1,
    handoff=Plan(turn=0.25, holding_turn=0.4, turns=2, peer_turns=1, peers_up_to=8),
    waiters=WaitersPlan((10, 100, 1_000), seconds=2.0, peers_up_to=10),
    names=UsePlan((100, 10_000), seconds=4.0, clean_seconds=5.0, others_part=0.5),
    hot=UsePlan((10_000,), seconds=3.0, clean_seconds=3.0, others_part=0.5),
    processes=(1, 8, 32),
    processes_plan=Plan(turn=1.0, holding_turn=1.0, turns=1, peer_turns=1, peers_up_to=8),
    leases=(10_000,),
    ttl=30.0,
    window=10.0,
    lease_peers=False,
    import_rounds=3,
    step_rounds=9,
    steps=10_000,
)
