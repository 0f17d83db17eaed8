"""In time: an acquisition with a timeout has an answer by then, whatever hangs on the other side.

1. By when is what its client wrote down (`until`): its timeout, and what it grants to a request that is under way.
2. What was done to the client itself (a pause, a starved process) excuses it for as long as it overlaps.
3. `SLACK_S` on top is for a busy machine. One that never returned was cut off by a kill, or the run itself says that
   the client did not end.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..history import Fault, History
from .finding import Finding, who

SLACK_S = 4.0


def check(history: History) -> Finding:
    """One violation for each acquisition that took longer than it may."""
    finding = Finding("in time", why_not="no acquisition has a timeout that is known")
    own: dict[str, list[Fault]] = {}
    for fault in history.faults:
        if fault.client is not None and fault.was_run:
            own.setdefault(fault.client, []).append(fault)
    for operation in history.operations:
        if operation.verb != "acquire" or not operation.until or operation.returned is None:
            continue
        finding.judged += 1
        late_s = (operation.returned - operation.until) / 1e9
        if late_s <= SLACK_S or _struck(own.get(operation.client, ()), operation.invoked, operation.returned):
            continue
        took_s = (operation.returned - operation.invoked) / 1e9
        story = f"{who(operation)} waited {took_s:.1f} s for an answer about {operation.name!r}"
        finding.broken(operation.name, f"{story}, {late_s:.1f} s more than it may", [operation], operation.until)
    return finding


def _struck(faults: Iterable[Fault], begin: int, end: int) -> bool:
    return any(fault.begin < end and fault.end > begin for fault in faults)
