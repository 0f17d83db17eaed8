"""What the findings sum up to, and checks that raise."""

from __future__ import annotations

import pytest

from holdfast.doctor.finding import (
    CheckResult,
    HealthCheck,
    HealthFinding,
    Outcome,
    failed,
    fine,
    found,
    unknown,
    warning,
)
from holdfast.doctor.report import Report
from tests.doctor.cases import OUTCOMES

FINE, WARNING, FAILED, UNKNOWN = fine("a"), warning("b"), failed("c"), unknown("d")


def report(*verdicts: CheckResult) -> Report:
    return Report("redis://", tuple(found("redis.version", verdict) for verdict in verdicts))


@pytest.mark.parametrize(
    ("verdicts", "code", "strict"),
    [
        ((), 0, 0),
        ((FINE, FINE), 0, 0),
        ((FINE, WARNING), 1, 2),
        ((WARNING, FAILED, UNKNOWN), 2, 2),
        ((WARNING, UNKNOWN, FINE), 3, 2),  # what was not looked at may be worse than a warning
    ],
)
def test_the_exit_code_is_the_worst_outcome(verdicts: tuple[CheckResult, ...], code: int, strict: int) -> None:
    assert report(*verdicts).exit_code() == code
    assert report(*verdicts).exit_code(strict=True) == strict


def test_a_check_that_raises_could_not_look() -> None:
    def look(subject: object) -> CheckResult:
        raise KeyError("maxmemory")

    finding = HealthCheck("redis.memory", look).finding(None)
    assert isinstance(finding, HealthFinding)
    assert (finding.outcome, finding.seen) == (Outcome.UNKNOWN, "KeyError: 'maxmemory'")


def test_data_is_versioned_and_whole() -> None:
    data = report(WARNING).as_data()
    assert (data["version"], data["outcome"]) == (1, "warning")
    assert set(data["findings"][0]) == {"id", "outcome", "where", "title", "seen", "why", "remedy"}
    assert set(OUTCOMES) == {"fine", "warning", "failed", "could not look"}
