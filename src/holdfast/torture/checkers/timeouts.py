"""In time: an acquisition with a timeout is answered by then, whatever hangs at the engine.

1. The client records the limit (`until`): its timeout, plus the time for a request in flight.
2. A fault of the client itself (a pause, a throttled process) that overlaps the acquisition excuses it.
3. `SLACK_S` is added for a busy machine. An acquisition that never returned was cut off by a kill, or the run itself
   reports that the client did not end.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..history import FaultRecord, History
from .finding import Finding, who

SLACK_S = 4.0


def check(history: History) -> Finding:
    """One violation for each acquisition that took longer than it may."""
    finding = Finding("in time", why_not="no acquisition has a timeout that is known")
    own: dict[str, list[FaultRecord]] = {}
    for fault in history.faults:
        if fault.client is not None and fault.was_run:
            own.setdefault(fault.client, []).append(fault)
    for operation in history.operations:
        if operation.verb != "acquire" or not operation.until or operation.returned is None:
            continue
        finding.judged += 1
        late_s = (operation.returned - operation.until) / 1e9
        if late_s <= SLACK_S or _disturbed(own.get(operation.client, ()), operation.invoked, operation.returned):
            continue
        took_s = (operation.returned - operation.invoked) / 1e9
        story = f"{who(operation)} waited {took_s:.1f} s for an answer about {operation.name!r}"
        finding.broken(operation.name, f"{story}, {late_s:.1f} s more than it may", [operation], operation.until)
    return finding


def _disturbed(faults: Iterable[FaultRecord], begin: int, end: int) -> bool:
    return any(fault.begin < end and fault.end > begin for fault in faults)
