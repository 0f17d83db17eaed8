"""`python -m holdfast_sim` and `make sim`: what they print, and with which code they end."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast_sim import cli
from holdfast_sim.options import parse
from holdfast_sim.planted import BUGS, planted
from holdfast_sim.report import SHOWN_SEED_COUNT, summary
from holdfast_sim.seed import run
from holdfast_sim.seeds import SeedTotals

ROOT = Path(__file__).parent.parent.parent


def test_a_clean_run_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--seeds", "20", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("core: 20 seeds in ")
    assert out.endswith("no invariant was broken\n")


def test_a_failing_seed_prints_the_command_that_replays_it(capsys: pytest.CaptureFixture[str]) -> None:
    with planted("overtaking-in-the-line"):
        assert cli.main(["--seeds", "20", "--jobs", "1"]) == 1
        out = capsys.readouterr().out
        assert 'breaks "nobody overtakes": \'n' in out
        command = out.partition("replay it: ")[2].splitlines()[0]
        program, *options = shlex.split(command.removeprefix("python -m "))
        assert (program, options[0]) == ("holdfast_sim", "--seed")
        assert cli.main(options) == 1
    told = capsys.readouterr().out
    assert "VIOLATION  nobody overtakes: " in told
    assert told.endswith(f"replay it: {command}\n")


def test_a_planted_bug_is_replayed_by_its_command() -> None:
    """In a process of its own, as a reader would do it."""
    found = subprocess.run(
        [sys.executable, "-m", "holdfast_sim", "--planted", "overtaking-in-the-line", "--json"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    [result] = json.loads(found.stdout)
    assert result["found"]
    command = [sys.executable, *shlex.split(result["replay"])[1:]]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 1, told.stderr
    assert f"broken: nobody overtakes: {result['story']}" in told.stdout


def test_a_replay_of_a_clean_seed_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--seed", "3"]) == 0
    assert capsys.readouterr().out.endswith("no invariant was broken\n")


def test_json_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    with planted("overtaking-in-the-line"):
        assert cli.main(["--seeds", "20", "--jobs", "1", "--json"]) == 1
        data = json.loads(capsys.readouterr().out)
    assert data["seeds"] == 20
    assert data["operations"] > 100
    assert data["faults"]["request lost"] > 0
    first = data["broken"][0]
    assert first["invariant"] == "nobody overtakes"
    assert first["replay"] == f"python -m holdfast_sim --seed {first['seed']}"


def test_a_replay_in_json_is_one_event_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--seed", "3", "--json"]) == 0
    *events, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event[1] for event in events[:2]] == ["profile", "names"]
    assert last == {"seed": 3, "invariant": None, "story": None, "replay": "python -m holdfast_sim --seed 3"}


def test_a_bug_that_is_not_found_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--planted", "renewal-moves-max-hold", "--seeds", "1"]) == 1
    out = capsys.readouterr().out
    assert "never" in out
    assert "0 of 1 planted bugs were found within 1 seeds each" in out


def test_many_broken_seeds_are_not_all_told_of() -> None:
    totals = SeedTotals()
    with planted("token-from-a-deleted-counter"):
        for seed in range(2 * SHOWN_SEED_COUNT):
            totals.add(run(seed))
    assert len(totals.broken) > SHOWN_SEED_COUNT
    out = summary(totals, took=1.0)
    assert out.count("replay it: ") == SHOWN_SEED_COUNT
    assert out.endswith(f"and {len(totals.broken) - SHOWN_SEED_COUNT} more of {2 * SHOWN_SEED_COUNT} seeds")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--seeds 0", "'0' is not a whole number from 1"),
        ("--seeds many", "'many' is not a whole number from 1"),
        ("--seeds -5", "'-5' is not a whole number from 1"),
        ("--jobs 0", "'0' is not a whole number from 1"),
        ("--seed 1.5", "'1.5' is not a whole number from 0"),
        ("--first ²", "'²' is not a whole number from 0"),
        ("--seed 1 --seeds 2", "not allowed with argument"),
        ("--seed 1 --planted all", "name one bug to plant in it"),
        ("--planted gremlin", "no bug is called 'gremlin'; --help lists them"),
        ("7", "unrecognized arguments: 7"),
    ],
)
def test_options_that_make_no_sense_end_with_2(
    options: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        parse(options.split())
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_help_has_examples_and_names_every_bug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parse(["--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert "examples:\n  python -m holdfast_sim  " in out
    assert all(f"  {bug} " in out for bug in BUGS)


@pytest.mark.parametrize(("given", "passed"), [("SEED=1234", "--seed 1234"), ("SEEDS=50", "--engine all --seeds 50")])
def test_make_passes_a_seed_on(given: str, passed: str) -> None:
    make = shutil.which("make")
    assert make is not None
    said = subprocess.run([make, "-n", "sim", given], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert f"-m holdfast_sim {passed}" in said.stdout


def test_the_page_lists_what_can_be_planted() -> None:
    page = (ROOT / "docs" / "adr" / "0004-simulator.md").read_text()
    for bug in BUGS.values():
        assert f"| `{bug.name}` |" in page, bug.name
        assert bug.invariant in page, bug.invariant
