"""Some hundred seeds, each with its own faults: no invariant is broken, and the run was worth its name."""

from __future__ import annotations

import pytest

from holdfast_sim.report import summary
from holdfast_sim.seeds import SeedTotals, run_all

DEFAULT_SEED_COUNT = 300


@pytest.fixture(scope="module")
def totals() -> SeedTotals:
    whole = SeedTotals()
    for part in run_all(range(DEFAULT_SEED_COUNT), jobs=1):
        whole.merge(part)
    return whole


def test_no_invariant_is_broken(totals: SeedTotals) -> None:
    assert totals.seeds == DEFAULT_SEED_COUNT
    assert not totals.broken, summary(totals, took=1.0)


def test_every_kind_of_fault_happens(totals: SeedTotals) -> None:
    assert set(totals.faults) >= {
        "request lost", "request doubled", "reply lost", "push lost", "push doubled", "client stops",
        "client crashes", "engine stalls", "engine restarts", "engine forgets its holds", "engine forgets its marks",
        "engine clock jumps forward", "engine clock jumps back", "calendar jumps forward", "calendar jumps back",
        "holder evicted",
    }  # fmt: skip


def test_the_clients_are_busy(totals: SeedTotals) -> None:
    """Invariants hold easily in a world where nothing is granted, lost, cancelled or written."""
    for kind, least in {
        "acquired": 10 * DEFAULT_SEED_COUNT,
        "lost": DEFAULT_SEED_COUNT,
        "not acquired": DEFAULT_SEED_COUNT,
        "cancelled": DEFAULT_SEED_COUNT,
        "passes": DEFAULT_SEED_COUNT,
        "fenced updates": DEFAULT_SEED_COUNT,
        "fence refuses": 5,
        "bare updates": DEFAULT_SEED_COUNT,
    }.items():
        assert totals.counts.get(kind, 0) >= least, kind
