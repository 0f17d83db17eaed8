"""`holdfast demo`: an update is lost behind a lock alone, and refused behind a fence. In under 20 s."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.harness import HOLDFAST, Cli
from tests.cli.screen import Screen


def test_the_story_goes_as_told(cli: Cli) -> None:
    told = cli.json("demo")
    assert told["seconds"] < 20
    unfenced, fenced = told["acts"]
    counts = ("acknowledged", "in_ledger", "lost", "refused")
    assert [unfenced[count] for count in counts] == [2, 1, 1, 0]
    assert [fenced[count] for count in counts] == [2, 2, 0, 1]
    assert (unfenced["balance"], unfenced["expected"]) == (105, 125)
    assert (fenced["balance"], fenced["expected"]) == (125, 125)


def test_the_order_of_events_is_that_of_the_story(cli: Cli) -> None:
    for demo_run in cli.json("demo")["acts"]:
        steps = [(step["process"], step["kind"]) for step in demo_run["steps"]]
        story = [
            ("A", "granted"),
            ("A", "checked"),
            ("kernel", "stopped"),
            ("B", "waits"),
            ("B", "granted"),
            ("B", "acknowledged"),
            ("kernel", "continued"),
            ("A", "refused" if demo_run["fenced"] else "acknowledged"),
            ("A", "late"),
        ]
        places = [steps.index(step) for step in story]
        assert places == sorted(places)
        tokens = [step["facts"]["token"] for step in demo_run["steps"] if step["kind"] == "granted"]
        assert tokens == sorted(set(tokens))


def test_the_timeline_is_read_on_a_terminal_of_80_columns(cli: Cli) -> None:
    with Screen({**cli.environment, "COLUMNS": "80"}, (HOLDFAST, "demo")) as screen:
        shown = screen.until("every rule of locking")
        assert screen.end() == 0
    assert max(map(len, shown.splitlines())) <= 80
    assert "the ledger says 105, not 125" in shown
    assert "the ledger says 125: nothing is lost" in shown


def test_it_leaves_nothing_behind(cli: Cli) -> None:
    with TemporaryDirectory() as folder:
        cli.environment["TMPDIR"] = folder
        assert cli.json("demo")["acts"]
        assert list(Path(folder).iterdir()) == []
    assert cli.locks.survey() == [], "it uses an engine of its own"
