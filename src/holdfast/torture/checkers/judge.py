"""The verdicts on a run: a line for every checker, and two lines for mutual exclusion and the fenced resource.

1. *Mutual exclusion* is expected to fail for every lease under pauses; the text says so. It never fails a run.
2. *Fenced resource* must hold. It is a verdict only under claim-before-read; under another discipline the line says
   what was lost, because something must be.
3. Each other line must hold if the engine promises it (`Run.promises`; an empty list means all).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..garbage_collection import gc_disabled
from ..history import History, Run
from . import commits, fifo, leftovers, linearizability, overlap, timeouts, tokens, updates
from .finding import Finding, HistoryViolation
from .holds import holds_of


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One line of the verdicts. `held` is None if nothing could be judged; `must`: a run fails if it did not hold."""

    title: str
    held: bool | None
    must: bool
    text: str

    @property
    def word(self) -> str:
        if self.held is None:
            return "not judged"
        if self.held:
            return "held"
        return "BROKEN" if self.must else "broken, as expected"


@dataclass(slots=True)
class Judgement:
    """What all checkers say of one run."""

    run: Run
    lines: list[VerdictLine]
    findings: dict[str, Finding]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether everything that must hold did."""
        return not any(line.must and line.held is False for line in self.lines)

    @property
    def violations(self) -> list[HistoryViolation]:
        return [violation for finding in self.findings.values() for violation in finding.violations]

    def as_data(self) -> dict[str, Any]:
        """For --json, and for the report."""
        return {
            "run": asdict(self.run),
            "passed": self.passed,
            "counts": self.counts,
            "lines": [{**asdict(line), "word": line.word} for line in self.lines],
            "violations": [violation.as_data() for violation in self.violations],
        }


def judge(history: History) -> Judgement:
    """Run every checker on a history."""
    with gc_disabled():
        by_name = holds_of(history.operations)
        found = (
            overlap.check(by_name),
            linearizability.check(by_name),
            tokens.check(by_name),
            commits.check(history.commits, history.run.discipline, history.operations),
            updates.check(history),
            fifo.check(history.operations, history.faults),
            leftovers.check(history),
            timeouts.check(history),
        )
        findings = {finding.checker: finding for finding in found}
        counts = _counts(history, findings)
    return Judgement(history.run, _lines(history.run, findings, counts), findings, counts)


def _counts(history: History, findings: dict[str, Finding]) -> dict[str, int]:
    of_verb: dict[str, int] = {}
    refused = 0
    for operation in history.operations:
        of_verb[operation.verb] = of_verb.get(operation.verb, 0) + 1
        refused += operation.outcome == "fail" and operation.verb in ("claim", "write")
    return {
        "operations": len(history.operations),
        "grants": findings["overlap"].judged,
        "losses": of_verb.get("lost", 0),
        "acknowledged": findings["updates"].judged,
        "lost_updates": len(findings["updates"].violations),
        "stale_writes": commits.stale_writes(history.commits),
        "refused": refused,
        "faults": sum(fault.was_run for fault in history.faults),
        "faults_not_run": sum(not fault.was_run for fault in history.faults),
        "violations": sum(len(finding.violations) for finding in findings.values()),
    }


def _lines(run: Run, findings: dict[str, Finding], counts: dict[str, int]) -> list[VerdictLine]:
    def promised(promise: str) -> bool:
        return not run.promises or promise in run.promises

    def line(title: str, checker: str, must: bool, good: str, bad: str) -> VerdictLine:
        finding = findings[checker]
        much = f"{bad}: {len(finding.violations):,} of {finding.judged:,}"
        text = {None: finding.why_not, True: f"{good}: {finding.judged:,}", False: much}[finding.held]
        return VerdictLine(title, finding.held, must, text)

    one_order = "grants in one order that explains them"
    return [
        _exclusion(findings["overlap"]),
        _fenced(run, findings, counts),
        line(
            "linearizable", "linearizable", promised("linearizable"), one_order, "grants without a place in any order"
        ),
        line("tokens", "tokens", promised("fencing"), "unique and growing", "given twice or out of order"),
        line("fifo", "fifo", True, "places in line kept", "places in line overtaken"),
        line("nothing left", "leftovers", True, "names free after the end", "names not free after the end"),
        line("in time", "in time", True, "answered by their timeout", "not answered by their timeout"),
    ]


def _exclusion(finding: Finding) -> VerdictLine:
    title = "mutual exclusion"
    if finding.held is None:
        return VerdictLine(title, None, False, finding.why_not)
    if finding.held:
        return VerdictLine(
            title, True, False, f"no overlap among {finding.judged:,} holds; a longer pause may still make one"
        )
    text = f"{len(finding.violations):,} of {finding.judged:,} holds overlapped another: no lease can stop a holder"
    return VerdictLine(title, False, False, f"{text} that sleeps through its end. That is what fences are for")


def _fenced(run: Run, findings: dict[str, Finding], counts: dict[str, int]) -> VerdictLine:
    updates, log = findings["updates"], findings["commits"]
    lost, acknowledged = len(updates.violations), updates.judged
    share = f"{lost:,} of {acknowledged:,} acknowledged updates lost"
    if acknowledged:
        share += f" ({lost / acknowledged:.1%})"
    if run.discipline != "claim-before-read":
        mistake = "no fence" if run.discipline == "unfenced" else "a fence that looks only at writes"
        held = None if not acknowledged else not lost
        return VerdictLine(f"resource, {run.discipline}", held, False, f"{share}, with {mistake}")
    title = "fenced resource"
    if not acknowledged:
        return VerdictLine(title, None, True, updates.why_not)
    late = f", {len(log.violations):,} commits behind a newer token" if log.violations else ""
    refused = f", {counts['refused']:,} stale holders refused" if counts["refused"] else ""
    return VerdictLine(title, not lost and not log.violations, True, share + late + refused)
