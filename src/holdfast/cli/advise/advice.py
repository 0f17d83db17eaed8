"""The advice: a leaf with its settings filled in, what the engine lacks for it, and why it was come to. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import Template
from typing import Any

from .engine_report import EngineReport, Lack, known_lacks, lacks_of
from .settings import Setting, settings_of
from .tree import DecisionTree, EngineFacts, Leaf
from .walk import ASSUMED_PAIR_S, Step, Walk

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Advice:
    leaf: Leaf
    steps: tuple[Step, ...]
    settings: tuple[Setting, ...]
    code: str
    engine: EngineFacts | None
    report: EngineReport | None
    lacks: tuple[Lack, ...]
    remarks: tuple[str, ...]


def advise(tree: DecisionTree, walked: Walk, report: EngineReport | None) -> Advice:
    """What the tree says to a walk that came to its end."""
    leaf = walked.leaf
    assert leaf is not None
    assert walked.question is None
    settings = settings_of(leaf, walked.number("p99"), report.p99 if report is not None and leaf.asks else None)
    engine = engine_of(tree, walked)
    lacks: list[Lack] = []
    if report is not None and leaf.asks:
        lacks = lacks_of(leaf, report.promises)
    elif engine is not None:
        lacks = known_lacks(leaf, engine)
    return Advice(
        leaf,
        walked.steps,
        tuple(settings),
        code_of(leaf, settings),
        engine,
        report,
        tuple(lacks),
        tuple(_remarks(walked, report)),
    )


def code_of(leaf: Leaf, settings: list[Setting]) -> str:
    """The program of a leaf, with the settings filled in."""
    return Template(leaf.code).substitute({setting.name: setting.text for setting in settings})


def engine_of(tree: DecisionTree, walked: Walk) -> EngineFacts | None:
    """The engine that was named; a file, if all are on one machine."""
    chosen = walked.chosen
    if "engine" in chosen:
        return tree.engines[chosen["engine"]]
    return tree.engines["sqlite"] if chosen.get("machines") == "one" else None


def _remarks(walked: Walk, report: EngineReport | None) -> Iterator[str]:
    """What follows from a figure that was given."""
    for step in walked.steps:
        if step.percent is None or step.answer is None or step.number is None:
            continue
        if step.question.kind == "rate":
            pair, how = (ASSUMED_PAIR_S, "assumed") if report is None else (report.p50, "measured")
            window = f"{pair * 1000:.3g} ms from its read to its write ({how})"
            yield f"{step.number:g} updates in a second, each with {window}:"
        verdict = "take a lock" if step.answer.below is None else "a retry is cheaper than a lock"
        yield f"{step.percent:.3g} % of the updates conflict: {verdict}."


def as_data(advice: Advice) -> dict[str, Any]:
    """For programs. `version` grows when a field changes its meaning or goes away."""
    leaf, report, engine = advice.leaf, advice.report, advice.engine
    return {
        "version": FORMAT_VERSION,
        "leaf": leaf.name,
        "title": leaf.title,
        "use": leaf.use,
        "why": leaf.why,
        "not_protected": list(leaf.not_protected),
        "remarks": list(advice.remarks),
        "settings": [{"name": each.name, "value": each.value, "why": each.why} for each in advice.settings],
        "language": leaf.language,
        "code": advice.code,
        "answers": {step.question.name: _given(step) for step in advice.steps},
        "engine": None
        if report is None and engine is None
        else {
            "url": report.url if report is not None else engine.url if engine is not None else "",
            "measured": report is not None,
            "promises": None if report is None else sorted(p for p in report.promises.KNOWN if p in report.promises),
            "pairs": None if report is None else report.pair_count,
            "p50": None if report is None else report.p50,
            "p99": None if report is None else report.p99,
            "lacks": [{"promise": lack.promise, "needed": lack.needed, "why": lack.why} for lack in advice.lacks],
        },
    }


def _given(step: Step) -> str | float:
    if step.number is not None:
        return step.number
    return step.answer.value if step.answer is not None else "unknown"
