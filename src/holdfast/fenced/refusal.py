"""A refusal as it is kept at its fence, so that it is known after the process that was refused is gone.

1. A fence keeps how often it has refused, and its last `LAST_COUNT` refusals, per resource. Growth ends there.
2. Keeping decides nothing: `FenceRejected` is raised in any case, and what cannot be kept is a line in the log, once
   per kind of fence. After a failure nothing is tried for `PAUSE_S`, so that a holder that tries again and again is
   refused at once.
3. Nothing is sent, written or waited for unless a holder is refused.
4. The time is that of the fence where it has a clock (Redis, databases), else that of the refused process.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass

from ..model import Sequencer
from .holder import Holder

LAST_COUNT = 8
MAX_OWNER_COUNT = 200
"""Characters of an owner that are kept; an id of ours is shorter."""
PAUSE_S = 10.0

logger = logging.getLogger("holdfast")
_failures: dict[str, float] = {}
"""When a kind of fence could not keep a refusal, last."""


@dataclass(frozen=True, slots=True)
class FenceRefusal:
    """One refusal. `mark` is None if there was none, `owner` empty if a bare token was refused."""

    time: float
    token: int
    mark: int | None
    owner: str

    def line(self) -> str:
        """As one line of text.

        >>> FenceRefusal(1700000000.5, 33, 34, "a1").line()
        '1700000000.500 33 34 a1'
        """
        return f"{self.time:.3f} {self.token} {'-' if self.mark is None else self.mark} {self.owner}"

    @classmethod
    def parse(cls, line: str) -> FenceRefusal:
        """Read a line; `ValueError` if it is none.

        >>> FenceRefusal.parse("1700000000.5 0033 - ").mark is None
        True
        """
        moment, token, mark, owner = line.split(" ", 3)
        return cls(float(moment), int(token), None if mark == "-" else int(mark), owner)


@dataclass(frozen=True, slots=True)
class RefusalRecord:
    """What a fence has kept of one resource: how often it has refused, and the last refusals, the newest first."""

    resource: str
    count: int
    last: tuple[FenceRefusal, ...]


def owner_of(holder: Holder) -> str:
    """Who is at the fence: the owner id of a lease, the text of a sequencer; empty for a bare token.

    >>> owner_of(42)
    ''
    """
    owner = str(holder) if isinstance(holder, Sequencer) else getattr(holder, "owner", "")
    return " ".join(owner.split())[:MAX_OWNER_COUNT] if isinstance(owner, str) else ""


def refusal_now(token: int, mark: int | None, owner: str) -> FenceRefusal:
    """A refusal at this moment, by the clock of this machine."""
    return FenceRefusal(time.time(), token, mark, owner)


def may_keep(kind: str) -> bool:
    """Whether a fence of this kind is to try (rule 2)."""
    return time.monotonic() - _failures.get(kind, -PAUSE_S) >= PAUSE_S


def not_kept(kind: str, resource: str, error: object, *, for_good: bool = False) -> None:
    """A refusal could not be kept: say so, once per kind of fence. `for_good`: another try would be the same."""
    first = kind not in _failures
    _failures[kind] = math.inf if for_good else time.monotonic()
    if first:
        logger.warning(
            "a refusal of the %s fence at %r could not be kept there, so `holdfast refusals` will not show it: %s",
            kind,
            resource,
            error,
            extra={"kind": "refusal_not_kept", "fence": kind, "resource": resource},
        )
