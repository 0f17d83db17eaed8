"""Some hundred seeds, each with its own faults: no invariant is broken, and the run was worth its name."""

from __future__ import annotations

import pytest

from holdfast_sim.fleet import Tally, run_all
from holdfast_sim.report import summary

SEEDS = 300


@pytest.fixture(scope="module")
def tally() -> Tally:
    whole = Tally()
    for part in run_all(range(SEEDS), jobs=1):
        whole.merge(part)
    return whole


def test_no_invariant_is_broken(tally: Tally) -> None:
    assert tally.seeds == SEEDS
    assert not tally.broken, summary(tally, took=1.0)


def test_every_kind_of_fault_happens(tally: Tally) -> None:
    assert set(tally.faults) >= {
        "request lost", "request doubled", "reply lost", "push lost", "push doubled", "client stops",
        "client crashes", "engine stalls", "engine restarts", "engine forgets its holds", "engine forgets its marks",
        "engine clock jumps forward", "engine clock jumps back", "calendar jumps forward", "calendar jumps back",
        "holder evicted",
    }  # fmt: skip


def test_the_clients_are_busy(tally: Tally) -> None:
    """Invariants hold easily in a world where nothing is granted, lost, cancelled or written."""
    for kind, least in {
        "acquired": 10 * SEEDS,
        "lost": SEEDS,
        "not acquired": SEEDS,
        "cancelled": SEEDS,
        "passes": SEEDS,
        "fenced updates": SEEDS,
        "fence refuses": 5,
        "bare updates": SEEDS,
    }.items():
        assert tally.counts.get(kind, 0) >= least, kind
