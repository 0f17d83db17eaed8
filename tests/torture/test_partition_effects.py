"""Torture of partitions: nobody writes late behind the fence; without it the run finds who does."""

from __future__ import annotations

from holdfast.torture.effects.partition_run import PARTITIONS, late_writes, owners_at_once
from holdfast.torture.effects.run import torture_effects


def test_behind_the_fence_nobody_writes_late() -> None:
    result = torture_effects(PARTITIONS, "sqlite", 6.0, seed=7)
    assert result.violations == []
    assert result.complaints == []
    assert result.passed


def test_without_the_fence_a_zombie_writes() -> None:
    """Within a few runs: each stops some member between its check and its write."""
    for seed in range(1, 7):
        result = torture_effects(PARTITIONS, "sqlite", 6.0, seed, fenced=False)
        assert result.complaints == []
        if result.violations:
            assert all("came after one with token" in line for line in result.violations)
            return
    raise AssertionError("nobody has written late")


def test_late_writes_are_told() -> None:
    assert late_writes("3", [5, 5, 7, 5, 6, 9]) == [
        "a write to shard 3 with token 5 came after one with token 7",
        "a write to shard 3 with token 6 came after one with token 7",
    ]


def test_two_owners_at_once_are_told() -> None:
    moments = [(1.0, 5, "w1-1"), (2.0, 5, "w1-1"), (3.0, 7, "w2-1"), (4.0, 7, "w3-1"), (5.0, 6, "w1-1")]
    assert owners_at_once("3", moments) == [
        "w2-1 and w3-1 owned shard 3 with the same token 7",
        "w1-1 owned shard 3 at 5.000 with token 6, after w3-1 with 7",
    ]
