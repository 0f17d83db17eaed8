"""Torture of actors: every message has its effect once; with a planted bug the run finds what goes wrong."""

from __future__ import annotations

from holdfast.torture.effects.actor_run import ACTORS, violations
from holdfast.torture.effects.run import torture_effects


def test_nothing_is_lost_or_doubled() -> None:
    result = torture_effects(ACTORS, "sqlite", 6.0, seed=7)
    assert result.violations == []
    assert result.complaints == []
    assert result.passed


def test_without_the_fence_a_zombie_is_believed() -> None:
    """Within a few runs: each stops some worker in the middle of a message."""
    for seed in range(1, 7):
        result = torture_effects(ACTORS, "sqlite", 6.0, seed, fenced=False)
        assert result.complaints == []
        if result.violations:
            return
    raise AssertionError("no zombie was believed")


def test_what_goes_wrong_is_told() -> None:
    told = ["w1-1-000001", "w1-1-000002", "w2-5-000001"]
    effects: list[list[object]] = [["w1-1-000002", 5], ["w1-1-000001", 4], ["w1-1-000001", 4]]
    assert violations("k0", told, effects) == [
        "the effect of w1-1-000001 on k0 was doubled",
        "the effect of w2-5-000001 on k0 was lost",
        "w1-1-000002 overtook w1-1-000001 on k0",
        "the tokens of k0 went back",
    ]
