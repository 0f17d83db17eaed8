"""Cases of a check: the setting with which it must not be fine, on a real server."""

from __future__ import annotations

from holdfast.doctor.finding import HealthFinding, Outcome, catalogue
from holdfast.doctor.report import Report

OUTCOMES = {outcome.word: outcome for outcome in Outcome}


def finding_of(report: Report, check_id: str) -> HealthFinding:
    """The one finding with this id; the worst, where several servers have one."""
    found = [finding for finding in report.findings if finding.id == check_id]
    assert found, f"{check_id} was not looked at; there are {sorted({f.id for f in report.findings})}"
    return max(found, key=lambda finding: finding.outcome is not Outcome.FINE)


def ids_of(engine: str) -> set[str]:
    """All checks of an engine in the catalogue."""
    return {check_id for check_id in catalogue() if check_id.partition(".")[0] == engine}
