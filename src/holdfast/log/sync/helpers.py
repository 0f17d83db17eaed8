# Generated from src/holdfast/log/aio/helpers.py by `make generate`: change that file, not this one.
"""The event log, for blocking connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...fenced.holder import Holder, token_of
from .. import flows
from ..model import (
    MAX_ID_BYTES,
    MAX_LIMIT_COUNT,
    START,
    EventData,
    Expected,
    Folded,
    Position,
    RecordedEvent,
    check_bounded,
    check_count,
    check_expected,
    check_position,
    check_stream,
    encode_events,
)
from .runner import run, run_fenced, target_for

S = TypeVar("S")


def append(
    connection: Any,
    stream: str,
    events: EventData | Iterable[EventData],
    *,
    expected: int | Expected,
    lease: Holder | None = None,
) -> int:
    """Append events in your transaction; answers with the stream's new version.

    `expected` is the version that you have read, `NONE` (the stream is new) or `ANY`; else `AppendConflict`, which has
    the real version. The same event ids again are the same append, and have the same answer. With a lease (or a token)
    it is fenced: `FenceRejected` once a newer token has appended to the stream.
    """
    target = target_for(connection)
    encoded = encode_events(events)
    token = None if lease is None else token_of(lease)
    flow = target.flows.append(check_stream(stream), encoded, check_expected(expected), token)
    return run_fenced(target, flow, f"log/{stream}", lease)


def read(connection: Any, stream: str, *, after: int = 0, limit: int = 1000) -> list[RecordedEvent]:
    """The events of a stream behind version `after`, at most `limit`; `Truncated` if some of them were removed."""
    target = target_for(connection)
    check_count(after, "after=", 0)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    return run(target, target.flows.read(check_stream(stream), after, limit))


def fold(
    connection: Any,
    stream: str,
    function: Callable[[S, RecordedEvent], S],
    initial: S,
    *,
    snapshot: str | None = None,
    every: int = 100,
) -> Folded[S]:
    """`function(state, event)` over all events of a stream: the last state, and the version to expect when you append.

    `snapshot` names the function: the state is then kept (as JSON, in your transaction) whenever `every` events or more
    lie behind the last snapshot, and the next fold begins there. A function that has changed needs another name.
    """
    target = target_for(connection)
    check_count(every, "every=", 1)
    if snapshot is not None:
        check_bounded(snapshot, "snapshot", MAX_ID_BYTES)
    return run(target, flows.fold(target.flows, check_stream(stream), function, initial, snapshot, every))


def tail(
    connection: Any, *, after: Position = START, limit: int = 100, allow_truncated: bool = False
) -> list[RecordedEvent]:
    """The events of all streams behind position `after`, in one order, at most `limit`.

    Nothing appears before an event that was given: go on with `after=events[-1].position`. `Truncated` if an event
    behind `after` was removed; with `allow_truncated` you get what is left.
    """
    target = target_for(connection)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    return run(target, target.flows.tail(check_position(after, "after="), limit, allow_truncated))


def truncate(connection: Any, stream: str, *, before: int, limit: int = 1000) -> int:
    """Remove events of a stream below version `before`, the oldest first, at most `limit`; answers with how many.

    In your transaction, which should be a short one of its own; again, until there were less than `limit`.
    """
    target = target_for(connection)
    check_count(before, "before=", 0)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    return run_fenced(target, target.flows.truncate_stream(check_stream(stream), before, limit), "", None)


def truncate_log(connection: Any, *, before: Position, limit: int = 1000) -> int:
    """Remove events of all streams before position `before`, as `truncate` does."""
    target = target_for(connection)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    return run_fenced(target, target.flows.truncate_log(check_position(before, "before="), limit), "", None)
