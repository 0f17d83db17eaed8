"""Torture of `once`: behind the fence every effect is done once; without it the run finds what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.torture.effects.ledger import EffectLedger
from holdfast.torture.effects.once_run import ONCE, judge_once
from holdfast.torture.effects.run import EffectsResult, torture_effects


def test_behind_the_fence_nothing_is_done_twice() -> None:
    result = torture_effects(ONCE, "sqlite", 6.0, seed=7)
    assert result.violations == []
    assert result.complaints == []
    assert result.told["completed"] > 0
    assert result.passed


def test_without_the_fence_a_zombie_does_it_again() -> None:
    """Within a few runs: each stops some process between its look and its write."""
    for seed in range(1, 7):
        result = torture_effects(ONCE, "sqlite", 6.0, seed, fenced=False)
        if any("applied 2 times" in line for line in result.violations):
            return
    raise AssertionError("no effect was applied twice")


def _judged(folder: Path, told: list[dict[str, str]], effects: list[tuple[str, int]]) -> list[str]:
    (folder / "w1-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told) + '{"what": "comp')
    EffectLedger.create(folder / "ledger.db")
    ledger = EffectLedger(folder / "ledger.db")
    for key, token in effects:
        ledger.append(key, token, "w", fenced=False)
    ledger.close()
    result = EffectsResult("sqlite", True, 1)
    judge_once(folder, "", result)
    return result.violations


def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    told = [
        {"what": "completed", "key": "a", "result": "w1:1"},
        {"what": "seen", "key": "a", "result": "w2:2"},
        {"what": "seen", "key": "b", "result": "w1:3"},
        {"what": "completed", "key": "c", "result": "w1:5"},
    ]
    found = _judged(tmp_path, told, [("a", 1), ("c", 5), ("c", 4)])
    assert found == [
        "the effect of c was applied 2 times, with the tokens [5, 4]",
        "the tokens of c went back: [5, 4]",
        "a had several results: w1:1, w2:2",
        "b has a result, and no effect",
    ]
