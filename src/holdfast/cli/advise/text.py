"""Questions and advice as lines of text. Colours are left out by click where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

import click

from .advice import Advice
from .tree import UNKNOWN, DecisionTree, Question

WIDTH_COUNT = 96


def question_lines(question: Question, number: int) -> Iterator[str]:
    """A question with its answers, as a person is asked."""
    yield ""
    yield click.style(paragraph(f"{number}. {question.text}", indent="   ", first=""), bold=True)
    for place, answer in enumerate(question.answers, 1):
        mark = str(place) if question.kind == "choice" else answer.value
        yield paragraph(f"{mark})  {answer.text}", indent="         ", first="    ")
    if question.kind == "percent":
        yield "    or a number of percent, as in 29"
    if question.kind == "rate":
        yield "    or a number, as in 40 or 0.1"
    if question.kind == "seconds":
        yield f"    seconds, or with a unit: 0.4, 400ms, 90s, 5m; or {UNKNOWN}"


def why_lines(question: Question) -> Iterator[str]:
    yield click.style(paragraph(question.why, indent="    "), fg="cyan")


def advice_lines(tree: DecisionTree, advice: Advice) -> Iterator[str]:
    """All that is known at a leaf."""
    leaf = advice.leaf
    yield heading(leaf.title)
    yield paragraph(leaf.use)
    yield ""
    yield paragraph(leaf.why)
    for remark in advice.remarks:
        yield paragraph(remark)
    yield heading("What it does not protect from")
    for line in leaf.not_protected:
        yield paragraph(line, indent="  ", first="- ")
    if advice.engine is not None or (advice.report is not None and leaf.asks):
        yield heading("Engine")
        yield from _engine_lines(tree, advice)
    if advice.settings:
        yield heading("Settings")
        width = max(len(f"{each.name} = {each.text}") for each in advice.settings)
        for each in advice.settings:
            yield paragraph(
                f"{each.name} = {each.text}".ljust(width) + f"   {each.why}", indent=" " * (width + 3), first=""
            )
    yield heading("Code")
    yield advice.code.rstrip("\n")


def _engine_lines(tree: DecisionTree, advice: Advice) -> Iterator[str]:
    report = advice.report
    if report is not None:
        p50, p99 = (f"{each * 1000:.3g} ms" for each in (report.p50, report.p99))
        yield paragraph(f"{report.url}: {report.pair_count} pairs of take and release, p50 {p50}, p99 {p99}")
    elif advice.engine is not None:
        yield paragraph(f"{advice.engine.title}: HOLDFAST_URL={advice.engine.url}")
    for lack in advice.lacks:
        if lack.needed:
            fit = ", ".join(
                name for name, facts in tree.engines.items() if name != "none" and lack.promise not in facts.cannot
            )
            line = f"It cannot do this: it does not promise {lack.promise!r}: {lack.why}. These can: {fit}."
            yield click.style(paragraph(line, indent="  ", first="- "), fg="red")
        else:
            line = f"It is weaker for this: it does not promise {lack.promise!r}: {lack.why}."
            yield click.style(paragraph(line, indent="  ", first="- "), fg="yellow")


def heading(text: str) -> str:
    return "\n" + click.style(text, bold=True)


def paragraph(text: str, indent: str = "", first: str | None = None) -> str:
    return fill(
        text,
        WIDTH_COUNT,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
