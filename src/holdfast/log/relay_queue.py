"""What a relay has read and not acknowledged yet: which event is due, and how far it may acknowledge. No I/O here.

1. Events are published in the order of the log. An event that could not be published holds up its stream only: later
   events of the stream wait behind it, and it is tried again after a pause that doubles. Streams that are held up take
   turns with the others: however long each of their tries takes, it costs the others no more than one.
2. The cursor cannot pass an event that was not published, so what was published behind it is published again by whoever
   takes over: at least once. How far the relay goes on behind a stream that is held up is bounded by its window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .._core.backoff import ceiling
from ..recipes.election import check_stop as check_stop
from ..recipes.options import check_hook as check_hook
from .model import Position, RecordedEvent


class PublishFailed(Exception):
    """Carries the error of `publish` past the handling of the database's errors."""


class HeldStream:
    """A stream whose first event could not be published, and what waits behind that."""

    __slots__ = ("failures", "not_before", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[RecordedEvent] = deque()
        self.failures = 0
        self.not_before = 0.0


class RelayQueue:
    """Events between the cursor and what has been read."""

    def __init__(self, base: float, cap: float) -> None:
        self.read: Position | None = None
        self._base, self._cap = base, cap
        self._unacknowledged: deque[RecordedEvent] = deque()
        self._published: set[Position] = set()
        self._fresh: deque[RecordedEvent] = deque()
        self._held: dict[str, HeldStream] = {}
        self._fresh_next = False
        """Whether what was tried last is of a stream that is held up."""

    def __len__(self) -> int:
        return len(self._unacknowledged)

    def feed(self, events: Iterable[RecordedEvent]) -> None:
        for event in events:
            self._unacknowledged.append(event)
            self._fresh.append(event)
            self.read = event.position

    def due(self, now: float) -> RecordedEvent | None:
        """The event to publish next, if there is one."""
        again = min(self._held.values(), key=lambda held: held.not_before, default=None)
        if again is not None and again.not_before > now:
            again = None
        while self._fresh and (again is None or self._fresh_next):
            event = self._fresh[0]
            if event.stream not in self._held:
                return event
            self._held[event.stream].waiting.append(self._fresh.popleft())
        return None if again is None else again.waiting[0]

    def next_at(self) -> float | None:
        """When a stream that is held up is tried again."""
        return min((held.not_before for held in self._held.values()), default=None)

    def published(self, event: RecordedEvent) -> None:
        """What was due has been published."""
        self._published.add(event.position)
        held = self._held.get(event.stream)
        self._fresh_next = held is not None
        if held is None:
            self._fresh.popleft()
            return
        held.waiting.popleft()
        held.failures, held.not_before = 0, 0.0
        if not held.waiting:
            del self._held[event.stream]

    def failed(self, event: RecordedEvent, now: float, chance: float) -> int:
        """What was due has not been published: hold its stream up for a while. Gives how often it has failed."""
        held = self._held.get(event.stream)
        self._fresh_next = held is not None
        if held is None:
            held = self._held[event.stream] = HeldStream()
            held.waiting.append(self._fresh.popleft())
        held.failures += 1
        held.not_before = now + chance * ceiling(held.failures - 1, self._base, self._cap)
        return held.failures

    def acknowledgeable(self) -> Position | None:
        """The last event up to which all have been published; None if the first has not."""
        position = None
        for event in self._unacknowledged:
            if event.position not in self._published:
                break
            position = event.position
        return position

    def acknowledged(self, position: Position) -> None:
        while self._unacknowledged and self._unacknowledged[0].position <= position:
            self._published.discard(self._unacknowledged.popleft().position)
