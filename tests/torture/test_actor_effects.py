"""Torture of actors: every message has its effect once; with a planted bug the run finds what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.torture.effects.actor_run import torture_actors, violations

ROOT = Path(__file__).parent.parent.parent


def test_nothing_is_lost_or_doubled() -> None:
    result = torture_actors("sqlite", 6.0, seed=7)
    assert result.violations == []
    assert result.complaints == []
    assert result.passed


def test_without_the_mark_a_zombie_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a few runs: each stops some worker in the middle of a message."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for seed in range(1, 30):
        result = torture_actors("sqlite", 6.0, seed, module="tests.torture.actors_without_a_mark")
        assert result.complaints == []
        if result.violations:
            assert all("went back" in line for line in result.violations)
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
