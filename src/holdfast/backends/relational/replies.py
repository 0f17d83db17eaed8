"""Replies that both engines give in the same words: numbers of a take, rows of a survey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from ..._core.line import GHOST
from ...model import ClaimView, LockView
from ..execute import SECOND_US
from ..queue_backend import Taken
from .error_mapping import Rows

YES = frozenset({"t", "1"})
Pushes: TypeAlias = Sequence[tuple[str, int]]
"""Whom a reply tells of a grant: each owner, and its token."""


class Released(NamedTuple):
    """The reply to a release: whether it was held, and who waits in this coordinator and was granted by that."""

    held: bool
    pushes: Pushes = ()


def pushes_of(told: Sequence[bytes]) -> Pushes:
    """From the words at the end of a reply: owner, token, owner, token …"""
    return [(told[at].decode(), int(told[at + 1])) for at in range(0, len(told), 2)]


def text_of(value: bytes | None) -> str:
    return (value or b"").decode()


def taken_of(numbers: Iterable[bytes]) -> list[Taken]:
    """Five numbers for each claim: token, look again (µs), ahead, capacity (0: it did match), mark."""
    several = list(map(int, numbers))
    if len(several) == 5:
        return [_taken(*several)]
    return [_taken(*several[at : at + 5]) for at in range(0, len(several), 5)]


def _taken(token: int, look_again: int, ahead: int, capacity: int, mark: int) -> Taken:
    return Taken(token, look_again / SECOND_US, ahead, capacity or None, mark)


def allowed_of(numbers: Iterable[bytes]) -> tuple[bool, float]:
    allowed, wait = map(int, numbers)
    return bool(allowed), wait / SECOND_US


def views_of(rows: Rows, prefix: str) -> list[LockView]:
    """Everybody in a line, in the order of names and places; names begin with this prefix."""
    found: dict[str, tuple[int, list[ClaimView], list[ClaimView]]] = {}
    for row in rows:
        name, capacity, owner, token, weight, host, pid, since, expires, actor, mode, holds, now = map(text_of, row)
        _, holders, waiters = found.setdefault(name.removeprefix(prefix), (int(capacity), [], []))
        view = ClaimView(
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
        (holders if view.token else waiters).append(view)
    return [LockView(name, capacity, tuple(held), tuple(wait)) for name, (capacity, held, wait) in found.items()]
