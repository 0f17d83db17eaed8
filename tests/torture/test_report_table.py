"""The verdicts in the terminal: two for each run, in 80 columns, and what must not be broken stands out."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from holdfast.torture.checkers import judge
from holdfast.torture.history import DISCIPLINES
from holdfast.torture.report import verdict_table
from holdfast.torture.synthetic_history import Bug, SyntheticPlan, make_history
from tests.torture.history_builder import HistoryBuilder


def printed(*plans: SyntheticPlan) -> str:
    judgements = [judge(make_history(plan)) for plan in plans]
    if not plans:
        history = HistoryBuilder().history()
        history.ended = None
        judgements = [judge(history)]
    console = Console(file=StringIO(), width=80, color_system=None)
    console.print(verdict_table(judgements))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def plan(bug: Bug = "") -> SyntheticPlan:
    return SyntheticPlan(holds=400, pauses=0.1, bug=bug)


def test_two_verdicts_for_each_run() -> None:
    text = printed(*(SyntheticPlan(holds=2000, pauses=0.1, discipline=discipline) for discipline in DISCIPLINES))
    assert max(map(len, text.splitlines())) <= 80
    for discipline in DISCIPLINES:
        assert discipline in text
    assert text.count("broken, as") >= 5  # mutual exclusion three times, and two resources
    assert "0 of " in text
    assert "that is what fences are for" in " ".join(text.split())
    assert "Only claim-before-read is a fence" in text


def test_what_must_hold_and_did_not_is_told_with_its_story() -> None:
    text = " ".join(printed(plan("open-fence")).split())
    assert "BROKEN" in text
    assert "synthetic, claim-before-read: fenced resource is broken" in text
    assert "commits: a write of 'orders/" in text


def test_other_promises_have_a_mark_each() -> None:
    text = printed(plan("overtake"))
    assert "✘ fifo" in text
    assert "✔ tokens" in text


def test_what_was_not_judged_is_no_pass() -> None:
    text = printed()
    assert text.count("not judged") == 2
    assert text.count("– ") == 5
    assert "✔" not in text
