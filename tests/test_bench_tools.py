"""Tiny runs of what the benchmark measures of the tools, and its arithmetic on planted logs of shards.

No figure of time is asserted here: shapes and counts are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import progress, registry, verdicts
from bench.holdfast_tools import PARTITION, ZOMBIE, ZOMBIE_ACTOR
from bench.measures import partitions, tools, zombies
from bench.measures.partitions import Effects, ShardEvent, find_effects
from bench.model import Target
from bench.outcomes import Report
from bench.report import text, tool_tables
from bench.tool_model import BY_HAND, ORDER, PartitionPlan
from bench.tool_outcomes import PartitionResult, ToolResult, ZombieResult


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    progress.quiet()
    monkeypatch.setattr(tools, "TURN_S", 0.01)
    monkeypatch.setattr(tools, "ROUND_COUNT", {True: 1, False: 1})


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with registry.engine("sqlite").start(tmp_path) as found:
        yield found


@pytest.mark.parametrize("engine", ["mysql", "postgresql", "redis", "sqlite"])
def test_every_tool_has_one_way_by_hand_and_one_of_holdfast(engine: str) -> None:
    found = registry.tools(engine)
    assert {each.tool for each in found} <= set(ORDER)
    for tool in {each.tool for each in found}:
        there = [each for each in found if each.tool == tool]
        assert [each.name for each in there if each.role == "floor"] == [BY_HAND]
        assert [each.name for each in there if each.role == "holdfast"] == ["holdfast"]
        assert len({each.count for each in there}) == 1
        assert all(each.note for each in there if each.role == "peer"), "what does the peer do else?"


def test_tools(target: Target) -> None:
    there = [each for each in registry.tools("sqlite") if each.role != "peer"]
    found = tools.measure(there, target, rounds=2)
    assert [(each.tool, each.contender) for each in found] == [
        (tool, name) for tool in ORDER for name in (BY_HAND, "holdfast")
    ]
    for each in found:
        assert each.done >= 2
        assert (each.ratio == 1.0) == (each.role == "floor")
        assert (each.ratio_ours == 1.0) == (each.role == "holdfast")


@pytest.mark.parametrize("peers", [True, False])
def test_peers_are_there_or_missing_with_a_reason_or_not_asked_for(tmp_path: Path, peers: bool) -> None:
    numbers = tmp_path / "run.json"
    words = ["--only", "tools", "--quick", "--out", str(tmp_path), "--json", str(numbers)]
    assert command.main([*words, *([] if peers else ["--no-peers"])]) == 0
    data = json.loads(numbers.read_text(encoding="utf-8"))
    measured = {each["contender"] for each in data["tools"]}
    missing = {each["contender"]: each["reason"] for each in data["absent"]}
    assert {BY_HAND, "holdfast"} <= measured
    assert measured | set(missing) == (
        {BY_HAND, "holdfast", "eventsourcing", "eventsourcing, recorder alone"} if peers else {BY_HAND, "holdfast"}
    )
    assert all("pip install" in reason for reason in missing.values())
    assert "once, first call, × by hand" in {each["title"] for each in data["verdicts"]}


def test_a_zombie_of_ours_is_refused_and_what_its_successor_was_given_stands(target: Target) -> None:
    found = zombies.measure("redis", ZOMBIE, target)
    assert (found.told, found.successor, found.stands, found.held) == (
        "refused: FenceRejected", "second", "second", True,
    )  # fmt: skip


def test_what_a_zombie_of_an_actor_writes_is_refused(target: Target) -> None:
    found = zombies.measure("postgresql", ZOMBIE_ACTOR, target)
    assert (found.told, found.successor, found.stands, found.held) == ("done: second", "second", "second", True)


def test_a_result_that_was_overwritten_does_not_stand() -> None:
    report = Report("redis", "planted", {}, zombies=[ZombieResult("once", "holdfast", "holdfast", "done", "2", "1")])
    [table] = [table for table in tool_tables.tools(report) if table.rows]
    assert table.rows[0][-1] == "NO"
    assert [each.mark for each in verdicts.judge(report, ()) if "zombie" in each.title] == ["MISSED"]


def test_partitions(target: Target) -> None:
    """The names of contenders are those of ZooKeeper; holdfast's member is the same on every engine."""
    found = partitions.measure("zookeeper", PARTITION, target, PartitionPlan(members=2, shards=6, ttl=10.0))
    assert [(each.event, each.moved, each.least, each.interrupted, each.overlaps) for each in found] == [
        ("one joins", 2, 2, 2, 0),
        ("one leaves", 2, 2, 2, 0),
        ("one is killed", 3, 3, 3, 0),
    ]
    assert all(each.owned > 0 and each.idle_longest > 0 for each in found)


def test_effects_of_planted_events() -> None:
    told = [
        ShardEvent(5.0, 2, "start", 0),
        ShardEvent(1.0, 0, "end", 0),  # idle for 4
        ShardEvent(2.0, 0, "end", 1),
        ShardEvent(3.0, 0, "start", 1),  # it went back to the same owner: idle for 1, interrupted, not moved
        ShardEvent(4.0, 2, "start", 2),  # its owner has not ended
        ShardEvent(6.0, 1, "end", 2),  # now one is left, so it is not idle
        ShardEvent(7.0, 1, "start", 2),
    ]
    owners = {0: 0, 1: 0, 2: 1, 3: 1}
    assert find_effects(told, owners) == Effects(interrupted=3, idle_longest=4.0, idle_total=5.0, overlaps=1)
    assert find_effects([], owners) == Effects(0, 0.0, 0.0, 0)


def test_what_peers_do_else_stands_once_in_the_note() -> None:
    def result(name: str, note: str) -> ToolResult:
        return ToolResult("once, replay", name, "peer", 1.0, 1.0, 1.0, 1e-4, 1e-4, 10, note)

    one = PartitionResult("other", "peer", "one joins", 8, 64, 6.0, 1, 1, 1, 1.0, 1.0, 1.0, 0, "stops everybody")
    report = Report("redis", "planted", {}, tools=[result("peer", "forgets")] * 2, partitions=[one])
    drawn = [table for table in tool_tables.tools(report) if table.rows]
    assert drawn[0].note.endswith(" peer: forgets.")
    assert drawn[0].note.count("forgets") == 1
    assert drawn[1].note.endswith(" other: stops everybody.")
    for table in drawn:
        assert {len(row) for row in table.rows} == {len(table.head)}
        assert len(text.markdown(table).splitlines()) == 6 + len(table.rows)
