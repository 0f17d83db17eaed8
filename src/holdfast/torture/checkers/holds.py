"""Definite holds: from when acquire had returned until release was invoked, or the loss was told.

1. A hold begins when the holder knows of it, and ends when it stops relying on it: between the two it certainly
   believes that it holds. So two such intervals that overlap are an overlap in fact.
2. A hold that no line ends lasts until the last line of its process, which was certainly alive until then.
3. A hold is clean if release() said that it was held until then. Anything else (lost, killed, False, no answer) may
   have ended at the engine at any time after the grant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..history import Operation


@dataclass(slots=True)
class DefiniteHold:
    """One grant that its holder relies on, from `start` to `end`."""

    acquire: Operation
    start: int
    end: int
    ended_by: Operation | None = None
    clean: bool = False

    @property
    def shown_by(self) -> list[Operation]:
        """The operations that show it."""
        return [self.acquire] if self.ended_by is None else [self.acquire, self.ended_by]


def holds_of(operations: Iterable[Operation]) -> dict[str, list[DefiniteHold]]:
    """All definite holds by name, in the order of their starts."""
    holds: dict[tuple[str, int, int], DefiniteHold] = {}
    last: dict[tuple[str, int], int] = {}
    ends = []
    for operation in operations:
        process = (operation.client, operation.process)
        seen = operation.returned or operation.invoked
        if seen > last.get(process, -1):
            last[process] = seen
        if operation.verb == "acquire":
            if operation.outcome == "ok" and operation.returned is not None:
                holds[*process, operation.seq] = DefiniteHold(operation, operation.returned, -1)
        elif operation.verb == "release" or operation.verb == "lost":
            ends.append(operation)
    for operation in ends:
        hold = holds.get((operation.client, operation.process, operation.of))
        if hold is None:
            continue
        if operation.verb == "release" and operation.outcome == "ok" and operation.held:
            hold.clean = True
        if hold.end < 0 or operation.invoked < hold.end:
            hold.end, hold.ended_by = operation.invoked, operation
    by_name: dict[str, list[DefiniteHold]] = {}
    for hold in holds.values():
        acquire = hold.acquire
        if hold.end < 0:
            hold.end = last[acquire.client, acquire.process]
        hold.end = max(hold.end, hold.start)
        by_name.setdefault(acquire.name, []).append(hold)
    for held in by_name.values():
        held.sort(key=lambda hold: hold.start)
    return by_name
