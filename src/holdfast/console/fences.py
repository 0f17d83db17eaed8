"""What fences have kept of their refusals (`--fence`), and which lock each belongs to.

1. A fence knows resources, tokens and owners, not names of locks. A refusal belongs to a lock if the refused owner was
   seen holding it with that token, or if the resource is called as the lock is.
2. A fence that cannot be read is told, and is no reason to forget the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import HoldfastError
from ..fenced.refusal import FenceRefusal, RefusalRecord
from ..settings import without_passwords
from .history import SeenHold, TimelineMark

MAX_RESOURCES_COUNT = 50


@dataclass(frozen=True, slots=True)
class FenceReadings:
    """What was read from all fences; `problems` by fence, without passwords."""

    records: tuple[tuple[str, RefusalRecord], ...] = ()
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(record.count for _, record in self.records)

    def as_data(self) -> dict[str, Any]:
        """The resources that were refused last, the newest first."""
        newest = sorted(self.records, key=lambda each: -_last(each[1]).time)
        return {
            "total": self.total,
            "problems": self.problems,
            "resources": [
                {
                    "fence": fence,
                    "resource": record.resource,
                    "count": record.count,
                    "at": _last(record).time,
                    "token": str(_last(record).token),
                    "mark": None if _last(record).mark is None else str(_last(record).mark),
                    "owner": _last(record).owner,
                }
                for fence, record in newest[:MAX_RESOURCES_COUNT]
            ],
        }

    def marks(self, name: str, holds: Iterable[SeenHold]) -> list[TimelineMark]:
        """The refusals that belong to a lock (rule 1)."""
        known = {(hold.owner, hold.token) for hold in holds}
        return [
            TimelineMark(
                "refused", refusal.time, refusal.time, f"the fence of {record.resource!r} refused token {refusal.token}"
            )
            for _, record in self.records
            for refusal in record.last
            if record.resource == name or (refusal.owner, refusal.token) in known
        ]


def _last(record: RefusalRecord) -> FenceRefusal:
    return record.last[0] if record.last else FenceRefusal(0.0, 0, None, "")


def read_fences(fences: Sequence[str]) -> FenceReadings:
    """Read all of them (rule 2)."""
    from ..refusals.fence_view import read_refusals

    records: list[tuple[str, RefusalRecord]] = []
    problems = {}
    for fence in fences:
        shown = without_passwords(fence)
        try:
            records += [(shown, record) for record in read_refusals(fence) if record.count]
        except HoldfastError as error:
            problems[shown] = str(error)
    return FenceReadings(tuple(records), problems)
