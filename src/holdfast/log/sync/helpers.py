# Generated from src/holdfast/log/aio/helpers.py by `make generate`: change that file, not this one.
"""The event log, for blocking connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...fenced.holder import Holder, token_of
from .. import appends, reads, truncation
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
from .runner import adapter_for, run, run_fenced

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
    adapter = adapter_for(connection)
    encoded = encode_events(events)
    exchange = appends.append(adapter.dialect, check_stream(stream), encoded, check_expected(expected))
    if lease is not None:
        token_of(lease)
    return run_fenced(connection, exchange, adapter, f"log/{stream}", lease)


def read(connection: Any, stream: str, *, after: int = 0, limit: int = 1000) -> list[RecordedEvent]:
    """The events of a stream behind version `after`, at most `limit`; `Truncated` if some of them were removed."""
    adapter = adapter_for(connection)
    check_count(after, "after=", 0)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    return run(connection, reads.read(adapter.dialect, check_stream(stream), after, limit), adapter)


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
    adapter = adapter_for(connection)
    check_count(every, "every=", 1)
    if snapshot is not None:
        check_bounded(snapshot, "snapshot", MAX_ID_BYTES)
    exchange = reads.fold(adapter.dialect, check_stream(stream), function, initial, snapshot, every)
    return run(connection, exchange, adapter)


def tail(
    connection: Any, *, after: Position = START, limit: int = 100, allow_truncated: bool = False
) -> list[RecordedEvent]:
    """The events of all streams behind position `after`, in one order, at most `limit`.

    Nothing appears before an event that was given: go on with `after=events[-1].position`. `Truncated` if an event
    behind `after` was removed; with `allow_truncated` you get what is left.
    """
    adapter = adapter_for(connection)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    exchange = reads.tail(adapter.dialect, check_position(after, "after="), limit, allow_truncated)
    return run(connection, exchange, adapter)


def truncate(connection: Any, stream: str, *, before: int, limit: int = 1000) -> int:
    """Remove events of a stream below version `before`, the oldest first, at most `limit`; answers with how many.

    In your transaction, which should be a short one of its own; again, until there were less than `limit`.
    """
    adapter = adapter_for(connection)
    check_count(before, "before=", 0)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    exchange = truncation.truncate_stream(adapter.dialect, check_stream(stream), before, limit)
    return run_fenced(connection, exchange, adapter, "", None)


def truncate_log(connection: Any, *, before: Position, limit: int = 1000) -> int:
    """Remove events of all streams before position `before`, as `truncate` does."""
    adapter = adapter_for(connection)
    check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
    exchange = truncation.truncate_log(adapter.dialect, check_position(before, "before="), limit)
    return run_fenced(connection, exchange, adapter, "", None)
