"""The quorum in the simulator: many seeds without a violation, and every planted bug found."""

from __future__ import annotations

import pytest

from holdfast_sim.quorum.planted import BUGS, planted
from holdfast_sim.quorum.world import run

DEFAULT_SEED_COUNT = 300
PLANTED_SEED_COUNT = 600
"""The rarest bugs show in one seed of a hundred."""


@pytest.mark.parametrize("part", range(3))
def test_no_seed_breaks_an_invariant(part: int) -> None:
    acquired, faults = 0, dict[str, int]()
    for seed in range(part * DEFAULT_SEED_COUNT, (part + 1) * DEFAULT_SEED_COUNT):
        outcome = run(seed)
        assert not outcome.invariant, f"seed {seed}: {outcome.invariant}: {outcome.story}"
        acquired += outcome.counts.get("acquired", 0)
        for kind, count in outcome.faults.items():
            faults[kind] = faults.get(kind, 0) + count
    assert acquired > 2000
    assert faults.keys() >= {"message lost", "message doubled", "node hangs", "node restarts", "client crashes"}


def test_a_seed_is_a_story_that_can_be_told_again() -> None:
    stories: list[list[tuple[float, str, str]]] = [[], []]
    for story in stories:
        run(7, lambda *told, into=story: into.append(told))
    assert stories[0] == stories[1] != []


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    with planted(bug):
        found = next((found for seed in range(PLANTED_SEED_COUNT) if (found := run(seed).invariant)), "")
    assert found, f"{bug} was not found"
    assert found != "no flow breaks", f"{bug} does not fit the flows any more: it was not planted"
