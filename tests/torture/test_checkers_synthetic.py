"""Whole runs, made up: each planted bug is caught by the checkers it is for, and a correct engine is never accused."""

from __future__ import annotations

import pytest

from holdfast.torture.checkers import judge
from holdfast.torture.history import DISCIPLINES, Discipline
from holdfast.torture.synthetic_history import BUGS, Bug, SyntheticPlan, make_history

CATCHES: dict[Bug, set[str]] = {
    "double-grant": {"overlap", "linearizable"},
    "same-token": {"tokens", "linearizable"},
    "token-back": {"tokens", "linearizable"},
    "overtake": {"fifo"},
    "open-fence": {"commits", "updates"},
    "left-behind": {"leftovers"},
}


def test_every_bug_has_its_checkers() -> None:
    assert set(CATCHES) == set(BUGS)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    judgement = judge(make_history(SyntheticPlan(holds=600, bug=bug, pauses=0.1 if bug == "open-fence" else 0.0)))
    found = {checker for checker, finding in judgement.findings.items() if finding.violations}
    assert found - {"overlap"} == CATCHES[bug] - {"overlap"}
    assert not judgement.passed


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("seed", range(5))
def test_a_correct_engine_is_never_accused(seed: int, discipline: Discipline, capacity: int) -> None:
    judgement = judge(
        make_history(SyntheticPlan(seed, holds=300, discipline=discipline, capacity=capacity, pauses=0.05))
    )
    found = {checker for checker, finding in judgement.findings.items() if finding.violations}
    assert found <= ({"overlap"} if discipline == "claim-before-read" else {"overlap", "updates"})
    assert judgement.passed
    assert all(line.held is not None for line in judgement.lines)


def test_without_pauses_nothing_overlaps() -> None:
    judgement = judge(make_history(SyntheticPlan(holds=300, pauses=0.0)))
    assert [line.held for line in judgement.lines] == [True] * 7
