"""What is built on locks, under all faults of the simulator. Planted bugs: see `test_planted_bugs_are_found`."""

from __future__ import annotations

import pytest

from holdfast_sim.seeds import CORE, WORLDS, SeedTotals, run_one
from tests.unit.effort import seeds

SEED_COUNTS = {"once": 150, "actors": 60, "partitions": 20}
"""About as long for each."""


@pytest.mark.parametrize("world", [world for world in WORLDS if world != CORE])
def test_seeds_are_clean(world: str) -> None:
    totals = SeedTotals()
    for seed in seeds(SEED_COUNTS[world]):
        totals.add(run_one(world, seed))
    assert {outcome.seed: f"{outcome.invariant}: {outcome.story}" for outcome in totals.broken} == {}


def test_the_clients_are_busy() -> None:
    """Invariants hold easily in a world where nothing is attempted, taken over or refused."""
    once, actors = SeedTotals(), SeedTotals()
    for seed in range(60):
        once.add(run_one("once", seed))
        actors.add(run_one("actors", seed))
    for totals, kind, least in (
        (once, "attempts", 120),
        (once, "fenced updates", 100),
        (once, "results told", 600),
        (once, "cancelled", 30),
        (once, "fence refuses", 1),
        (actors, "messages told", 300),
        (actors, "messages handled", 300),
        (actors, "workers refused", 5),
    ):
        assert totals.counts.get(kind, 0) >= least, kind
