"""Replies that both engines give in the same words: numbers of a take, rows of a survey.

How the last hold of a name ended is a note, as the seat keeps it: `how:token:owner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ..._core.line import GHOST
from ...model import ClaimView, LockView, Predecessor
from ..execute import SECOND_US
from ..queue_backend import Push, Taken
from .error_mapping import Rows

YES = frozenset({"t", "1"})
STANDS, EXPIRED = "stands", "expired"
"""States of a row of a survey: a claim that stands in its line; a hold that has ended, and nobody has noted it yet."""
WORDS_OF_PUSH_COUNT, WORDS_OF_TAKEN_COUNT = 3, 6
Pushes: TypeAlias = Sequence[tuple[str, Push]]
"""Whom a reply tells of a grant."""


class Released(NamedTuple):
    """The reply to a release: whether it was held, and who waits in this coordinator and was granted by that."""

    held: bool
    pushes: Pushes = ()


def pushes_of(told: Sequence[bytes]) -> Pushes:
    """From the words at the end of a reply: owner, token, note (`-`: there is none), owner, token, note …"""
    return [push_of(*told[at : at + WORDS_OF_PUSH_COUNT]) for at in range(0, len(told), WORDS_OF_PUSH_COUNT)]


def push_of(owner: bytes, token: bytes, note: bytes) -> tuple[str, Push]:
    return owner.decode(), Push(int(token), predecessor_of(note))


def predecessor_of(note: bytes) -> Predecessor | None:
    """From a note; `-`, or nothing, where there is none."""
    if len(note) < 2:
        return None
    how, token, owner = note.decode().split(":", 2)
    return Predecessor(int(token), owner, how)


def text_of(value: bytes | None) -> str:
    return (value or b"").decode()


def taken_of(words: Sequence[bytes]) -> list[Taken]:
    """Six words for each claim: token, look again (µs), ahead, capacity (0: it did match), mark, note."""
    if len(words) == WORDS_OF_TAKEN_COUNT:
        return [_taken(*words)]
    several = range(0, len(words), WORDS_OF_TAKEN_COUNT)
    return [_taken(*words[at : at + WORDS_OF_TAKEN_COUNT]) for at in several]


def _taken(token: bytes, look_again: bytes, ahead: bytes, capacity: bytes, mark: bytes, note: bytes) -> Taken:
    if token != b"0":
        return Taken(int(token), predecessor=predecessor_of(note))
    return Taken(0, int(look_again) / SECOND_US, int(ahead), int(capacity) or None, int(mark))


def allowed_of(numbers: Iterable[bytes]) -> tuple[bool, float]:
    allowed, wait = map(int, numbers)
    return bool(allowed), wait / SECOND_US


@dataclass(slots=True)
class _SurveyedLine:
    """What the rows of one name tell."""

    capacity: int
    holders: list[ClaimView] = field(default_factory=list)
    waiters: list[ClaimView] = field(default_factory=list)
    ended: Predecessor | None = None
    """The last hold that has ended, and nobody has noted it yet."""
    unrecovered: bool = False
    noted: Predecessor | None = None

    def seen(self, name: str) -> LockView | None:
        unrecovered = self.ended or self.noted if self.unrecovered else None
        if not self.holders and not self.waiters and unrecovered is None:
            return None
        return LockView(name, self.capacity, tuple(self.holders), tuple(self.waiters), unrecovered)

    def add_end(self, ended: Predecessor, robust: bool) -> None:
        """As the reference's `Line.sweep` would note it."""
        self.unrecovered |= robust
        if self.ended is None or ended.token > self.ended.token:
            self.ended = ended


def views_of(rows: Rows, prefix: str) -> list[LockView]:
    """Everybody in a line, in the order of names and places; names begin with this prefix.

    A row may end with the state of its claim, whether that is robust, and the note of a name that is unrecovered.
    """
    found: dict[str, _SurveyedLine] = {}
    for row in rows:
        name, capacity, owner, token, weight, host, pid, since, expires, actor, mode, holds, now, *end = map(
            text_of, row
        )
        state, robust, note = end or (STANDS, "", "")
        line = found.setdefault(name.removeprefix(prefix), _SurveyedLine(int(capacity)))
        if note:
            line.unrecovered, line.noted = True, predecessor_of(note.encode())
        if state == EXPIRED:
            line.add_end(Predecessor(int(token), owner, EXPIRED), robust in YES)
        if state != STANDS:
            continue
        claim = ClaimView(
            owner=owner.removeprefix(GHOST),
            token=int(token) or None,
            weight=int(weight),
            host=host,
            pid=int(pid),
            since=int(since) / SECOND_US,
            remaining=max(0, int(expires) - int(now)) / SECOND_US,
            actor=actor,
            mode=mode,
            live=token == "0" or (holds in YES and not owner.startswith(GHOST)),
            age=max(0, int(now) - int(since)) / SECOND_US,
        )
        (line.holders if claim.token else line.waiters).append(claim)
    return [view for name, line in found.items() if (view := line.seen(name)) is not None]
