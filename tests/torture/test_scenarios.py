"""Every scenario on every engine: with a fence nothing is lost, and docs/guarantees.md says what is seen.

All engines are run in parallel in the background, because they mostly wait; each test waits for its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import Misconfigured
from holdfast.torture.engines import STARTERS
from holdfast.torture.scenarios import NAMES, ScenarioResult, chosen, scenario
from holdfast.torture.scenarios.model import ScenarioOutcome
from holdfast.torture.scenarios.suite import run_on
from holdfast.torture.scenarios.table import cells, write

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
AT_ONCE = 4


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[list[ScenarioResult]]]]:
    folder = tmp_path_factory.mktemp("scenarios")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {engine: pool.submit(run_on, engine, chosen("all"), folder) for engine in STARTERS}


@pytest.mark.parametrize("engine", STARTERS)
def test_an_engine_runs_every_scenario(engine: str, suite: dict[str, Future[list[ScenarioResult]]]) -> None:
    shown = suite[engine].result()
    assert [one.scenario.name for one in shown] == list(NAMES)
    for one in shown:
        assert one.failure == "", one.scenario.name
        assert one.passed, f"{one.scenario.name}: {cells(one)}"


@pytest.mark.parametrize("engine", STARTERS)
def test_the_page_says_what_is_seen(engine: str, suite: dict[str, Future[list[ScenarioResult]]]) -> None:
    page = PAGE.read_text()
    for one in suite[engine].result():
        section = page.split(f"\n## {one.scenario.name}\n")[1].split("\n## ")[0]
        (row,) = re.findall(rf"^\| {re.escape(engine)} \|.*$", section, re.MULTILINE)
        told = [cell.strip() for cell in row.strip("|").split(" | ")]
        if "not run:" in row or one.not_run:
            continue  # another machine, or an engine that came later
        seen = list(cells(one))
        seen[1] = told[1]  # whether two held at the same time hangs on how quickly things went
        for cell, page_says in zip(seen, told, strict=True):
            outcomes = re.sub(r"\b\d of \d: ", "", page_says).split("; ") if " of 3: " in page_says else [page_says]
            outcomes = ["" if outcome == "nothing to say" else outcome for outcome in outcomes]
            assert cell in outcomes, f"{one.scenario.name}: write the page anew (see its head)"


def test_a_zookeeper_that_lost_one_member_keeps_what_is_held(suite: dict[str, Future[list[ScenarioResult]]]) -> None:
    """One outcome, whichever member it was: the ttl outlives an election."""
    [shown] = [one for one in suite["zookeeper"].result() if one.scenario.name == "restart-amnesia"]
    assert list(cells(shown))[1:] == [
        "no", "nothing lost", "nothing lost", "the next one has to wait until the first lets go"
    ]  # fmt: skip


def test_unfenced_something_is_lost_in_every_scenario_that_makes_two_holders() -> None:
    lost = PAGE.read_text().split("## gc-pause")[1].split("## clock-jump")[0]
    assert "| redis | yes | **1 of 2 lost** | nothing lost, 1 refused |" in lost


def test_the_page_names_what_no_design_survives() -> None:
    page = PAGE.read_text()
    assert "## What no design survives" in page
    assert "**beyond any design**" in page.split("## forgets-and-goes-back")[1]


def test_the_same_outcomes_give_the_same_page() -> None:
    unfenced = ScenarioOutcome("gc-pause", "redis", "unfenced", acknowledged=2, lost=1, overlapped=True)
    fenced = ScenarioOutcome("gc-pause", "redis", "claim-before-read", acknowledged=1, refused=1, overlapped=True)
    shown = [
        ScenarioResult(scenario("gc-pause"), "redis", unfenced, fenced),
        ScenarioResult(scenario("gc-pause"), "etcd", not_run="gone"),
    ]
    text = write(shown)
    assert "| redis | yes | **1 of 2 lost** | nothing lost, 1 refused |  |\n" in text
    assert "| etcd |  |  |  | not run: gone |\n" in text
    assert text == write(shown)


def test_a_loss_behind_the_fence_fails() -> None:
    broken = ScenarioOutcome("gc-pause", "redis", "claim-before-read", acknowledged=2, lost=1)
    assert not ScenarioResult(scenario("gc-pause"), "redis", broken, broken).passed
    back = ScenarioOutcome("gc-pause", "redis", "claim-before-read", acknowledged=2, disordered=True)
    assert not ScenarioResult(scenario("gc-pause"), "redis", back, back).passed
    assert not ScenarioResult(scenario("gc-pause"), "redis", failure="a client has ended").passed
    assert ScenarioResult(scenario("forgets-and-goes-back"), "redis", broken, broken).passed, "beyond any design"


def test_a_name_that_is_no_scenario_is_told() -> None:
    with pytest.raises(Misconfigured, match="no scenario 'meteor'; there are: gc-pause,"):
        chosen("meteor")
