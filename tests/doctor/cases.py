"""Cases of a check: the setting with which it must not be fine, on a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from holdfast.doctor import examine
from holdfast.doctor.finding import HealthFinding, Outcome, catalogue
from holdfast.doctor.report import Report
from holdfast.torture.sandbox.clock import Clock

LONG = 60.0
LOOK = "import json, holdfast.doctor as d; print(json.dumps(d.examine({url!r}, say=lambda _: None).as_data()))"
OUTCOMES = {outcome.word: outcome for outcome in Outcome}


def finding_of(report: Report, check_id: str) -> HealthFinding:
    """The one finding with this id; the worst, where several servers have one."""
    found = [finding for finding in report.findings if finding.id == check_id]
    assert found, f"{check_id} was not looked at; there are {sorted({f.id for f in report.findings})}"
    return max(found, key=lambda finding: finding.outcome is not Outcome.FINE)


def ids_of(engine: str) -> set[str]:
    """All checks of an engine in the catalogue."""
    return {check_id for check_id in catalogue() if check_id.partition(".")[0] == engine}


def look(url: str) -> Report:
    """Without experiments, and patiently."""
    return examine(url, request_timeout=20.0, say=lambda _: None)


def elsewhere(check_id: str, *words: str, url: str = "memory://", before: str = "", **environment: str) -> str:
    """The outcome of a check in a process of its own."""
    done = subprocess.run(
        [*(words or (sys.executable,)), "-c", before + LOOK.format(url=url)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=True,
    )
    return str(next(each["outcome"] for each in json.loads(done.stdout)["findings"] if each["id"] == check_id))


def with_a_wrong_clock(check_id: str, url: str, folder: Path) -> str:
    """The outcome in a process whose clock is a minute ahead."""
    clock = Clock(folder / "clock")
    clock.move(60.0)
    return elsewhere(check_id, url=url, **clock.environment())
