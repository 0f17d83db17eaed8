"""What the log raises besides the errors that all of holdfast has.

HoldfastError
├── VersionConflict
│   └── AppendConflict       the stream is not at the expected version; nothing was appended
├── EventIdConflict          some of the event ids are there already, but not as this append; nothing was appended
├── Truncated                what was to be read has been removed
└── AlreadyAcknowledged      the cursor is there or beyond; nothing was changed
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import HoldfastError, VersionConflict
from .model import ANY, NONE, Expected, Position


class AppendConflict(VersionConflict):
    """The stream is not at the expected version. Nothing was appended; read the stream again and retry.

    `actual` is its version; None where this transaction cannot see it, because it reads an older state than the last
    append left: roll back first. `holdfast.sql.retry` retries it.
    """

    def __init__(self, stream: str, expected: int | Expected, actual: int | None) -> None:
        super().__init__("holdfast_log_stream", {"stream": stream}, expected)
        self.stream, self.expected, self.actual = stream, expected, actual
        wanted = "to have no event" if expected is NONE else f"at version {expected}"
        found = (
            "has been appended to since this transaction began to read" if actual is None else f"is at version {actual}"
        )
        text = f"stream {stream!r} " + ("" if expected is ANY else f"was expected {wanted}, and ") + found
        self.args = (
            f"{text}; nothing was appended. Roll back (where there is a transaction), read it again and retry",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (AppendConflict, (self.stream, self.expected, self.actual))


class EventIdConflict(HoldfastError):
    """Some of the event ids are in the stream, but not as one append of the same events. Nothing was appended."""

    def __init__(self, stream: str, ids: Sequence[str]) -> None:
        self.stream, self.ids = stream, list(ids)
        super().__init__(
            f"stream {stream!r} already has events with the ids {', '.join(map(repr, self.ids[:5]))}, and they are not "
            "this append: others, fewer, or with other contents; nothing was appended. An id names one event for ever"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (EventIdConflict, (self.stream, self.ids))


class Truncated(HoldfastError):
    """Events that were to be read have been removed. `what` is the stream, or "the log"."""

    def __init__(self, what: str, after: int | Position, removed: int | Position) -> None:
        self.what, self.after, self.removed = what, after, removed
        super().__init__(
            f"{what} was to be read after {after}, but events up to {removed} have been removed; "
            "begin from a snapshot or from what you know otherwise"
            + ("" if isinstance(after, int) else ", or read what is left with allow_truncated=True")
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (Truncated, (self.what, self.after, self.removed))


class AlreadyAcknowledged(HoldfastError):
    """The consumer's cursor is at this position or beyond it. Nothing was changed; roll back, and poll again."""

    def __init__(self, consumer: str, position: Position, cursor: Position) -> None:
        self.consumer, self.position, self.cursor = consumer, position, cursor
        super().__init__(
            f"consumer {consumer!r} has acknowledged up to {cursor}, and {position} is not behind that; nothing was "
            "changed. What you did for these events was done before: roll back (in a transaction), and poll again"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (AlreadyAcknowledged, (self.consumer, self.position, self.cursor))
