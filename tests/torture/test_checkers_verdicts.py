"""The verdicts: two that people ask for, a line for each other checker; what must hold, and what cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.torture.checkers import Judgement, judge
from holdfast.torture.history import Discipline
from holdfast.torture.history_reader import export
from holdfast.torture.synthetic_history import Bug, SyntheticPlan, make_history
from tests.torture.history_builder import HistoryBuilder


def lines(judgement: Judgement) -> dict[str, str]:
    return {line.title: line.word for line in judgement.lines}


def made_up(discipline: Discipline = "claim-before-read", bug: Bug = "") -> Judgement:
    return judge(make_history(SyntheticPlan(holds=400, discipline=discipline, bug=bug, pauses=0.1)))


def test_a_lease_under_pauses_is_expected_to_overlap() -> None:
    judgement = made_up()
    exclusion = judgement.lines[0]
    assert (exclusion.title, exclusion.held, exclusion.must) == ("mutual exclusion", False, False)
    assert "no lease can stop a holder that sleeps" in exclusion.text
    assert lines(judgement)["fenced resource"] == "held"
    assert judgement.passed


@pytest.mark.parametrize("discipline", ["unfenced", "check-on-write"])
def test_without_a_fence_updates_are_lost_and_that_is_expected(discipline: Discipline) -> None:
    judgement = judge(make_history(SyntheticPlan(holds=3000, discipline=discipline, pauses=0.1)))
    line = judgement.lines[1]
    assert line.title == f"resource, {discipline}"
    assert line.word == "broken, as expected"
    assert f"{judgement.counts['lost_updates']:,} of {judgement.counts['acknowledged']:,}" in line.text
    assert judgement.passed


def test_a_broken_fence_fails_the_run() -> None:
    judgement = made_up(bug="open-fence")
    assert lines(judgement)["fenced resource"] == "BROKEN"
    assert not judgement.passed


def test_what_the_engine_does_not_promise_is_told_and_does_not_fail_the_run() -> None:
    history = make_history(SyntheticPlan(holds=400, bug="double-grant"))
    assert not judge(history).passed
    run = history.run
    history.run = type(run)(run.engine, run.seed, promises=("fencing",))
    judgement = judge(history)
    assert lines(judgement)["linearizable"] == "broken, as expected"
    assert judgement.passed


def test_an_empty_run_is_no_pass_of_anything() -> None:
    history = HistoryBuilder().history()
    history.ended = None
    assert {line.held for line in judge(history).lines} == {None}


def test_a_violation_names_operations_that_are_there() -> None:
    history = make_history(SyntheticPlan(holds=400, discipline="unfenced", pauses=0.1))
    data = judge(history).as_data()
    assert json.loads(json.dumps(data)) == data | {
        "run": data["run"] | {"promises": list(data["run"]["promises"]), "notes": list(data["run"]["notes"])}
    }
    assert data["violations"]
    for violation in data["violations"]:
        assert violation["operations"]
        for index in violation["operations"]:
            operation = history.operations[index]
            assert operation.index == index
            assert operation.name == violation["name"]
            assert violation["begin"] <= operation.invoked <= violation["end"]


@pytest.mark.parametrize(("bug", "code"), [("", 0), ("open-fence", 1)])
def test_a_recorded_run_is_judged_from_the_shell(bug: Bug, code: int, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    history = make_history(SyntheticPlan(holds=200, bug=bug, pauses=0.1))
    file.write_text("".join(json.dumps(line) + "\n" for line in export(history)))
    command = [sys.executable, "-m", "holdfast.torture.checkers", str(file)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps([judge(history).as_data()]))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert "mutual exclusion" in done.stdout


def test_the_bench_says_what_it_took() -> None:
    command = [sys.executable, "-m", "holdfast.torture.checkers", "--bench", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "for 100,000 operations" in done.stdout
