"""What a checker says: how much it judged, and each thing that is broken with the operations around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..history import Operation


@dataclass(frozen=True, slots=True)
class HistoryViolation:
    """One thing that is broken: a sentence, the operations that show it (by index), and when.

    `at` is the moment from which it is broken; `begin` to `end` is what its operations span. 0 is after the end.
    """

    checker: str
    name: str
    story: str
    operations: tuple[int, ...] = ()
    commits: tuple[int, ...] = ()
    at: int = 0
    begin: int = 0
    end: int = 0

    def as_data(self) -> dict[str, Any]:
        return {
            "checker": self.checker,
            "name": self.name,
            "story": self.story,
            "operations": list(self.operations),
            "commits": list(self.commits),
            "at": self.at,
            "begin": self.begin,
            "end": self.end,
        }


@dataclass(slots=True)
class Finding:
    """The outcome of one checker. `judged` is how many things it could judge; `why_not` is why there were none."""

    checker: str
    judged: int = 0
    violations: list[HistoryViolation] = field(default_factory=list)
    why_not: str = ""

    @property
    def held(self) -> bool | None:
        """Whether the promise held; None if nothing could be judged."""
        if self.violations:
            return False
        return True if self.judged else None

    def broken(
        self, name: str, story: str, operations: Iterable[Operation], at: int = 0, commits: Iterable[int] = ()
    ) -> None:
        """Add a violation that these operations show."""
        shown = sorted(operations, key=lambda operation: operation.invoked)
        begin = min((operation.invoked for operation in shown), default=0)
        end = max((operation.returned or operation.invoked for operation in shown), default=0)
        indices = tuple(operation.index for operation in shown)
        self.violations.append(HistoryViolation(self.checker, name, story, indices, tuple(commits), at, begin, end))


def who(operation: Operation) -> str:
    """An operation's client and token, in a story."""
    return f"{operation.client} (token {operation.token})" if operation.token else operation.client
