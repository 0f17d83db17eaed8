"""The scripts of the page do on real data what they are for: V8 runs them, against a stub of a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from holdfast.torture.checkers import judge
from holdfast.torture.history import FaultRecord, History, Leftover
from holdfast.torture.report import write_report
from holdfast.torture.report.data import run_data
from holdfast.torture.report.page import SCRIPTS
from holdfast.torture.synthetic_history import SyntheticPlan, make_history
from tests.torture.history_builder import HistoryBuilder

PARTS = Path(write_report.__code__.co_filename).parent
MS = 1_000_000
Page = Callable[[str], Any]


@pytest.fixture(scope="module")
def page() -> Page:
    """Evaluates an expression on the page; what it gives comes back through JSON."""
    racer = MiniRacer()
    racer.eval((Path(__file__).parent / "page_stub.js").read_text())
    racer.eval('"use strict";\n' + "\n".join((PARTS / name).read_text() for name in SCRIPTS))
    racer.eval("listen()")

    def ask(expression: str) -> Any:
        text = racer.eval(f"JSON.stringify({expression})")
        return None if text is None else json.loads(str(text))

    return ask


def show(page: Page, history: History) -> dict[str, Any]:
    """Open the page on one run."""
    data = run_data(history, judge(history))
    page(f"(state.runs = [understand({json.dumps(data)})], chooseRun(0), 0)")
    return data


def accidents() -> History:
    """Killed while holding, not acquired, nobody knows, something left behind, no commit at all."""
    builder = HistoryBuilder()
    killed = builder.grant("c1", asked=1 * MS, got=2 * MS, token=1)
    builder.operation("c1", "write", 5 * MS, None, of=killed.seq, token=1, parent=0)
    builder.grant("c2", asked=3 * MS, got=8 * MS, token=2, let_go=20 * MS, done=21 * MS)
    builder.grant("c3", asked=4 * MS, got=5 * MS, token=3, lost=6 * MS, let_go=7 * MS, done=8 * MS, held=False)
    builder.operation("c4", "acquire", 2 * MS, 9 * MS, outcome="fail", error="NotAcquired")
    builder.operation("c4", "acquire", 10 * MS, 19 * MS, outcome="info", error="OutcomeUnknown")
    history = builder.history()
    history.faults = [
        FaultRecord("kill-client", "client:c1", 6 * MS, 6 * MS),
        FaultRecord("kill-node", "node:1", 4 * MS, 12 * MS),
    ]
    history.faults.append(FaultRecord("delay", "engine", note="not run: no netem"))
    history.left = [Leftover("a", "o9", 4)]
    return history


def threads() -> History:
    """Two clients with several grants open at once."""
    history = make_history(SyntheticPlan(holds=200, clients=8, names=5))
    for operation in history.operations:
        operation.client = f"c{int(operation.client[1:]) % 2}"
    return history


RUNS: dict[str, Callable[[], History]] = {
    "nothing": History,
    "accidents": accidents,
    "threads": threads,
    "permits": lambda: make_history(SyntheticPlan(holds=200, capacity=3)),
    "unfenced": lambda: make_history(SyntheticPlan(holds=200, discipline="unfenced", pauses=0.1)),
    "dense": lambda: make_history(SyntheticPlan(holds=6000, clients=2, discipline="unfenced", pauses=0.01)),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_drawn_at_every_zoom(page: Page, name: str) -> None:
    data = show(page, RUNS[name]())
    for factor in ("1", "0.5", "0.1", "0.01", "3", "1000"):
        page(f"(timeline.view.zoom({factor}), redraw(), 0)")
    assert page("timeline.run.lanes.map((lane) => lane.client)") == data["clients"]
    assert page("$('verdicts').innerHTML").count('class="verdict') == 7


@pytest.mark.parametrize("name", RUNS)
def test_every_acquire_is_a_grant_or_a_wait_in_its_lane(page: Page, name: str) -> None:
    history = RUNS[name]()
    show(page, history)
    grants = {grant["op"]: grant for lane in page("timeline.run.lanes") for grant in lane["grants"]}
    acquires = [operation for operation in history.operations if operation.verb == "acquire"]
    assert set(grants) == {operation.index for operation in acquires}
    for operation in acquires:
        grant = grants[operation.index]
        assert grant["granted"] == (operation.outcome == "ok")
        assert grant["t0"] <= grant["t1"] <= grant["end"]


def test_grants_that_are_open_at_once_do_not_cover_each_other(page: Page) -> None:
    show(page, threads())
    for lane in page("timeline.run.lanes"):
        assert lane["rows"] == 4
        for row in range(4):
            mine = [grant for grant in lane["grants"] if grant["row"] == row]
            assert all(one["end"] <= other["t0"] for one, other in pairwise(mine))


def test_a_killed_holder_ends_with_its_kill_and_a_lost_one_goes_on(page: Page) -> None:
    show(page, accidents())
    killed, waited, lost = (page(f"timeline.run.lanes[{number}].grants[0]") for number in range(3))
    assert (killed["t1"], killed["end"]) == (1000, 5000)
    assert (waited["t1"], waited["end"], waited["lost"]) == (7000, 19000, -1)
    assert (lost["t1"], lost["lost"], lost["end"]) == (4000, 5000, 6000)


@pytest.mark.parametrize("name", ["accidents", "unfenced", "permits"])
def test_every_violation_leads_to_its_operations(page: Page, name: str) -> None:
    data = show(page, RUNS[name]())
    seen, times = [], []
    for _ in data["violations"]:
        page("(go(1), 0)")
        chosen = page("state.violation")
        seen.append((chosen["checker"], chosen["story"]))
        times.append((chosen["at"] < 0, chosen["at"]))  # what was found after the end comes last
        assert sorted(page("[...timeline.marked]")) == sorted(chosen["operations"])
        if chosen["at"] >= 0:
            assert page("timeline.view.from") <= chosen["at"] <= page("timeline.view.to")
        table = page("$('around').innerHTML")
        assert table.count('class="culprit"') == len(chosen["operations"])
    assert sorted(seen) == sorted((violation[0], violation[2]) for violation in data["violations"])
    assert len(seen) >= 2
    assert times == sorted(times)


def test_what_is_under_the_pointer_is_told(page: Page) -> None:
    history = accidents()
    show(page, history)
    for client, token in (("c1", 1), ("c2", 2), ("c3", 3)):
        lane = f"timeline.run.lanes.find((lane) => lane.client === '{client}')"
        middle = f"({lane}.grants[0].t1 + {lane}.grants[0].end) / 2"
        at = f"{{ clientX: timeline.x({middle}), clientY: {lane}.y + {lane}.height / 2 }}"
        found = page(f"under({at})")
        assert history.operations[found["op"]].token == token
        assert f"<b>{client}</b> acquire a" in page(f"words(under({at}))")
    assert "not acquired" in page("words(under({ clientX: timeline.x(4000), clientY: timeline.run.lanes[3].y + 12 }))")
    assert "kill-node" in page("words(under({ clientX: timeline.x(6000), clientY: timeline.run.targets[0].y + 5 }))")


def test_lost_updates_are_rings_until_there_are_too_many(page: Page) -> None:
    show(page, RUNS["unfenced"]())
    lost = page("timeline.run.counts.lost_updates")
    assert lost
    before = page("strokes.arc ?? 0")
    page("(timeline.draw(), 0)")
    assert page("strokes.arc") - before == lost
    show(page, RUNS["dense"]())
    before = page("strokes.arc")
    page("(timeline.view.fit(), timeline.draw(), 0)")
    assert page("strokes.arc") == before


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        *(("span(12)", "12 µs"), ("span(1234)", "1.2 ms"), ("span(123456)", "123 ms"), ("span(2345678)", "2.35 s")),
        *(("short(42)", "42"), ("short('1794740952225823')", "…225823")),
        ("shorten('c1 (token 1794740952225823) and c2 (token 7)')", "c1 (token …225823) and c2 (token 7)"),
        ("escape('<b a=\"1\">&')", "&lt;b a=&quot;1&quot;&gt;&amp;"),
        *(("step(1000, 1100)", 100), ("step(1000, 110)", 1000), ("step(3000, 1100)", 500)),
        ("[...shares(4, [[0.5, 2.25], [3, 9]])]", [0.5, 1, 0.25, 1]),
        ("bisect([1, 3, 3, 5], 3, (one) => one)", 1),
    ],
)
def test_words_and_figures(page: Page, expression: str, expected: object) -> None:
    assert page(expression) == expected
