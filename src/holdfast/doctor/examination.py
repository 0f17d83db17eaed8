"""One subject and what is looked at there. An engine's module in `checks/` has `examinations(url, request_timeout)`.

It is a context manager that yields a list of `Examination`s: one per server that can be looked at on its own. A server
that cannot be reached is no reason to raise: its checks could not look, and say why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .finding import HealthCheck, HealthFinding


@dataclass(frozen=True, slots=True)
class Examination:
    """A subject, e.g. one server. `where` names it, if there are several."""

    subject: Any
    checks: Sequence[HealthCheck[Any]]
    where: str = ""

    def findings(self) -> Iterator[HealthFinding]:
        for check in self.checks:
            finding = check.finding(self.subject, self.where)
            if finding is not None:
                yield finding
