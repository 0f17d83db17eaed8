"""How long to measure: a full run in under four minutes, a quick one in under a minute."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measures.growth import GrowthPlan
from bench.measures.handoff import Plan


@dataclass(frozen=True, slots=True)
class Effort:
    """The bounds of every loop of a run."""

    name: str
    pair_rounds: int
    pair_turn: float
    handoff: Plan
    growth: GrowthPlan
    leases: int
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
    growth=GrowthPlan((10, 100, 1_000, 10_000), seconds=5.0, peers_up_to=100),
    leases=10_000,
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
    growth=GrowthPlan((10, 100, 1_000), seconds=2.0, peers_up_to=10),
    leases=10_000,
    ttl=30.0,
    window=10.0,
    lease_peers=False,
    import_rounds=3,
    step_rounds=9,
    steps=10_000,
)
