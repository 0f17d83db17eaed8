"""How holds ended, on engines where a claim vanishes with its owner's session: an *end note* stands beside a hold.

1. It is written in the step that grants, and removed in the step that releases. So one whose claim is gone tells of a
   hold that ended uncleanly. An eviction writes one, too, which says so.
2. It costs a write more, so only some claims of a mutex have one: those with `recover=`, and others as the engine
   says. Of the rest nothing is remembered, unless they were evicted.
3. Notes of one name stand side by side, and the one with the highest token is of the last hold. A name is unrecovered
   if any of them is robust. Who releases cleanly removes all that it has found if none is; else they stay, until a
   holder has said that it put things right.
4. A note names its claim's owner, who has claimed once. So it is never taken for the note of a later hold, and
   that of a claim which still stands counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

from ...model import LockSpec, Predecessor


class EndNote(Protocol):
    """As an engine has read it."""

    @property
    def owner(self) -> str: ...

    @property
    def token(self) -> int: ...

    @property
    def ended(self) -> str:
        """How the hold ended, if its claim is gone."""
        ...

    @property
    def robust(self) -> bool: ...


N = TypeVar("N", bound=EndNote)


def is_robust(spec: LockSpec) -> bool:
    """Whether what an unclean end leaves is to be put right. Only a mutex can be asked for so."""
    return spec.robust and spec.capacity == 1


def left_by(notes: Sequence[N], standing: Collection[str]) -> list[N]:
    """Those of holds that have ended: of none of the owners whose claims stand."""
    return [note for note in notes if note.owner not in standing]


def predecessor_of(notes: Sequence[EndNote], owner: str = "") -> Predecessor | None:
    """The last of these holds, which have ended; `owner`, who asks, is not its own predecessor."""
    others = [note for note in notes if note.owner != owner]
    if not others:
        return None
    last = max(others, key=lambda note: note.token)
    return Predecessor(last.token, last.owner, last.ended)


def is_unrecovered(notes: Sequence[EndNote]) -> bool:
    return any(note.robust for note in notes)


def unrecovered_of(notes: Sequence[EndNote]) -> Predecessor | None:
    """Of holds that have ended: the last one, if something is to be put right."""
    return predecessor_of(notes) if is_unrecovered(notes) else None
