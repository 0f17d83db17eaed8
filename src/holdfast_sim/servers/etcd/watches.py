"""The watches at one member.

1. A watch that begins after the present revision is told of every change when it is applied. One that begins earlier
   is behind: a loop that comes by ten times a second brings it up to date, and from then on it is like the others.
2. What one transaction changed comes in one message, and so does all that a watch was behind.
3. A watch that is behind what was compacted away is cancelled, with the revision up to which that is so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import RpcError
from .fields import Fields, Json, present
from .requests import Span
from .store import Event, Store

SYNC_EVERY_S = 0.1
INVALID_ID_NUMBER = -1
FILTERS = ("NOPUT", "NODELETE")
NO_PUT, NO_DELETE = range(2)


@dataclass(eq=False, slots=True)
class Watcher:
    stream: WatchStream
    id: int
    span: Span
    since: int
    """The first revision that it has not been told of."""
    filters: list[int]
    prev_kv: bool

    def wanted(self, events: list[Event]) -> list[Event]:
        return [
            event
            for event in events
            if event.kv.key in self.span
            and event.kv.modified >= self.since
            and (NO_DELETE if event.deletion else NO_PUT) not in self.filters
        ]


@dataclass(eq=False, slots=True)
class WatchStream:
    """One client's stream of watches. `send` takes the fields of a message, and the revision for its header."""

    send: Callable[[Json, int], None]
    permit: Callable[[Span], None]
    """Raises an `RpcError` if its client may not watch that."""
    watchers: dict[int, Watcher] = field(default_factory=dict)
    _next_id: int = 0

    def new_id(self) -> int:
        while self._next_id in self.watchers:
            self._next_id += 1
        self._next_id += 1
        return self._next_id - 1


class Watches:
    def __init__(self, store: Store, unsynced: Callable[[], None]) -> None:
        """`unsynced` is called when there is something to do for the loop."""
        self.store = store
        self._unsynced = unsynced
        self._ahead: dict[Watcher, None] = {}
        self._behind: dict[Watcher, None] = {}

    @property
    def count(self) -> int:
        return len(self._ahead) + len(self._behind)

    def ask(self, stream: WatchStream, message: Fields) -> None:
        if "create_request" in message:
            self._create(stream, message.message("create_request"))
        elif "cancel_request" in message:
            id_ = message.message("cancel_request").number("watch_id")
            watcher = stream.watchers.pop(id_, None)
            if watcher is not None:
                self._drop(watcher)
                stream.send(present(watch_id=id_, canceled=True), self.store.revision)
        elif "progress_request" in message:
            stream.send(present(watch_id=INVALID_ID_NUMBER), self.store.revision)

    def _create(self, stream: WatchStream, request: Fields) -> None:
        span = Span(request.data("key") or b"\0", request.data("range_end"))
        revision, start = self.store.revision, request.number("start_revision")
        reason, id_ = "", request.number("watch_id")
        try:
            stream.permit(span)
        except RpcError as error:
            reason = error.described
        if not reason and span.end not in (b"", b"\0") and span.key >= span.end:
            reason = "mvcc: watcher range is empty"
        if not reason and id_ in stream.watchers and id_:
            reason = "mvcc: duplicate watch ID provided on the WatchStream"
        if reason:
            stream.send(
                present(watch_id=INVALID_ID_NUMBER, created=True, canceled=True, cancel_reason=reason), revision
            )
            return
        id_ = id_ or stream.new_id()
        watcher = Watcher(stream, id_, span, start, request.choices("filters", FILTERS), request.flag("prev_kv"))
        stream.watchers[id_] = watcher
        if start == 0 or start > revision:
            watcher.since = max(start, revision + 1)
            self._ahead[watcher] = None
        else:
            self._behind[watcher] = None
            self._unsynced()
        stream.send(present(watch_id=id_, created=True), revision)

    def notify(self, events: list[Event]) -> None:
        """These have just happened, at the present revision."""
        for watcher in list(self._ahead):
            self._tell(watcher, events)

    def sync(self) -> None:
        """The loop comes by."""
        store = self.store
        behind, self._behind = self._behind, {}
        for watcher in behind:
            if watcher.since < store.compacted:
                del watcher.stream.watchers[watcher.id]
                watcher.stream.send(present(watch_id=watcher.id, canceled=True, compact_revision=store.compacted), 0)
                continue
            self._tell(watcher, store.events_since(watcher.since))
            watcher.since = store.revision + 1
            self._ahead[watcher] = None

    def _tell(self, watcher: Watcher, events: list[Event]) -> None:
        wanted = watcher.wanted(events)
        if wanted:
            shown = [self._shown(event, watcher.prev_kv) for event in wanted]
            watcher.stream.send(present(watch_id=watcher.id, events=shown), self.store.revision)

    def _shown(self, event: Event, prev_kv: bool) -> Json:
        kv, before = event.kv, event.kv.modified - 1
        shown = present(type="DELETE" if event.deletion else "", kv=kv.shown())
        if prev_kv and kv.created != kv.modified and before >= self.store.compacted:
            for old in self.store.at(Span(kv.key, b""), before):
                shown["prev_kv"] = old.shown()
        return shown

    def close(self, stream: WatchStream) -> None:
        for watcher in stream.watchers.values():
            self._drop(watcher)
        stream.watchers.clear()

    def _drop(self, watcher: Watcher) -> None:
        self._ahead.pop(watcher, None)
        self._behind.pop(watcher, None)
