"""The report is one file that needs nothing else, shows every operation, and lies beside what it was made from."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import Misconfigured
from holdfast.torture.checkers import Judgement, judge
from holdfast.torture.history import DISCIPLINES, FaultRecord, History
from holdfast.torture.history_reader import load
from holdfast.torture.report import write_report
from holdfast.torture.report.data import SHOWN_COUNT, run_data
from holdfast.torture.report.page import SCRIPTS
from holdfast.torture.synthetic_history import SyntheticPlan, make_history
from tests.torture.history_builder import HistoryBuilder

PARTS = Path(write_report.__code__.co_filename).parent


def judged(plan: SyntheticPlan) -> tuple[History, Judgement]:
    history = make_history(plan)
    return history, judge(history)


@pytest.fixture(scope="module")
def runs() -> list[tuple[History, Judgement]]:
    return [judged(SyntheticPlan(holds=150, discipline=discipline, pauses=0.1)) for discipline in DISCIPLINES]


@pytest.fixture(scope="module")
def page(runs: list[tuple[History, Judgement]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report") / "out.html", runs)[0]


def carried(page: Path) -> list[dict[str, Any]]:
    """The runs that a page carries, unpacked."""
    found = re.search(r"const PACKED = (\[.*?\]);", page.read_text())
    assert found is not None
    return [json.loads(gzip.decompress(base64.b64decode(text))) for text in json.loads(found[1])]


class Elements(HTMLParser):
    """What a page refers to, and the ids it has."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "poster"):
                self.references.append(f"{tag} {name}={value}")
            if name == "id" and value:
                self.ids.add(value)


def test_the_page_asks_nothing_of_the_network(page: Path) -> None:
    text = page.read_text()
    elements = Elements()
    elements.feed(text)
    assert elements.references == []
    for way in ("http:", "https:", "//cdn", "@import", "url(", "fetch(", "XMLHttpRequest", "import("):
        assert way not in re.sub(r"const PACKED = .*", "", text)
    assert "{{" not in re.sub(r"const PACKED = .*", "", text).replace("${{", "")


def test_what_the_scripts_look_for_is_on_the_page(page: Path) -> None:
    text = page.read_text()
    elements = Elements()
    elements.feed(text)
    wanted = set(re.findall(r'\$\("(\w+)"\)', text))
    assert wanted
    assert wanted <= elements.ids


def test_every_script_and_style_is_in_the_page(page: Path) -> None:
    text = page.read_text()
    assert {file.name for file in PARTS.glob("*.js")} == set(SCRIPTS)
    for part in ("page.css", *SCRIPTS):
        assert (PARTS / part).read_text() in text


def test_the_page_carries_every_operation(page: Path, runs: list[tuple[History, Judgement]]) -> None:
    for run, (history, judgement) in zip(carried(page), runs, strict=True):
        columns = run["operations"]
        assert {len(column) for column in columns.values()} == {len(history.operations)}
        for index, operation in enumerate(history.operations):
            assert run["verbs"][columns["verb"][index]] == operation.verb
            assert run["outcomes"][columns["outcome"][index]] == operation.outcome
            assert run["clients"][columns["client"][index]] == operation.client
            assert run["names"][columns["name"][index]] == operation.name
            assert run["errors"][columns["error"][index]] == operation.error
            assert columns["token"][index] == operation.token
            assert (columns["t1"][index] >= 0) == (operation.returned is not None)
            if operation.of:
                mine = history.operations[columns["of"][index]]
                assert (mine.client, mine.seq, mine.verb) == (operation.client, operation.of, "acquire")
        assert min(columns["t0"]) >= 0
        assert len(run["commits"]) == len(history.commits)
        assert len(run["faults"]) == len(history.faults)
        assert sum(commit[-1] for commit in run["commits"]) == judgement.counts["lost_updates"]
        assert [line["word"] for line in run["lines"]] == [line.word for line in judgement.lines]


def test_every_violation_leads_to_its_operations(page: Path, runs: list[tuple[History, Judgement]]) -> None:
    for run, (_, judgement) in zip(carried(page), runs, strict=True):
        assert run["violations"]
        shown = [(checker, story, indices) for checker, _, story, indices, *_ in run["violations"]]
        assert shown == [(v.checker, v.story, list(v.operations)) for v in judgement.violations]
        assert all(indices for _, _, indices in shown)


def test_of_too_many_violations_the_rest_is_counted() -> None:
    history, judgement = judged(SyntheticPlan(holds=8000, discipline="unfenced", pauses=0.1))
    run = run_data(history, judgement)
    overlaps = len(judgement.findings["overlap"].violations)
    assert overlaps > SHOWN_COUNT
    assert run["found"]["overlap"] == overlaps
    assert sum(violation[0] == "overlap" for violation in run["violations"]) == SHOWN_COUNT
    assert sum(mild for _, mild in run["moments"]) == overlaps


def test_the_verdicts_and_histories_lie_beside_it(runs: list[tuple[History, Judgement]], tmp_path: Path) -> None:
    page, verdicts, *histories = write_report(tmp_path / "out.html", runs)
    assert [file.name for file in histories] == [
        f"out-{number}-synthetic-made-up-{discipline}.jsonl" for number, discipline in enumerate(DISCIPLINES, 1)
    ]
    told = json.loads(verdicts.read_text())
    assert [run["history"] for run in told] == [file.name for file in histories]
    for data, file, (_, judgement) in zip(told, histories, runs, strict=True):
        again = judge(load(file))
        assert json.loads(json.dumps(again.as_data())) == json.loads(json.dumps(judgement.as_data()))
        assert data["passed"] == judgement.passed
    assert sorted(tmp_path.iterdir()) == sorted([page, verdicts, *histories])


def test_names_and_errors_are_text_not_markup(tmp_path: Path) -> None:
    builder = HistoryBuilder()
    builder.grant("c1</script>", asked=1, got=2, token=2**60, name="<b>")
    history = builder.history()
    history.run = type(history.run)("<script>alert(1)</script>")
    history.faults = [FaultRecord("not possible", "engine", note="not run: <i>")]
    page = write_report(tmp_path / "out.html", [(history, judge(history))])[0]
    assert "alert(1)</script>" not in page.read_text()
    (run,) = carried(page)
    assert run["names"] == ["<b>"]
    assert run["operations"]["token"] == [str(2**60)]  # JavaScript would round the number
    assert run["faults"] == [["not possible", "engine", -1, -1, "not run: <i>"]]


def test_an_empty_run_has_a_page_too(tmp_path: Path) -> None:
    history = History()
    (run,) = carried(write_report(tmp_path / "out.html", [(history, judge(history))])[0])
    assert run["seconds"] == 0
    assert run["operations"]["t0"] == []


def test_a_report_that_is_no_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"does not end with \.html"):
        write_report(tmp_path / "out.json", [])
