"""What those of one coordinator share who tell, ask and handle the messages of actors: they need no engine for it.

All of it may be lost, or out of date: the engine's records count. Whoever takes something out of a dict has it alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from .flow import WakeEvent


class Turn:
    """One who waits to write to a record, or who does so. `event` wakes whoever waits."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event: WakeEvent | None = None


@dataclass(slots=True, eq=False)
class Asker:
    """Those who wait for the answer to one message. The worker that has taken it out of `askers` tells it, and sets the
    event."""

    event: WakeEvent
    answer: str | None = None
    error: str | None = None

    def is_told(self) -> bool:
        """Whether it has its answer, or the error."""
        return self.answer is not None or self.error is not None


@dataclass(slots=True, eq=False)
class ActiveWorker:
    """One who handles messages of an actor. If it is `idle` it is woken by every message, else by who asks."""

    event: WakeEvent
    who: str
    """The thread or task that calls the handler."""
    idle: bool = False
    tells_itself: bool = False
    """Whether the handler tells its own actor something: what it has handled is then acknowledged at once, for room."""


@dataclass(slots=True, eq=False)
class ActorExchange:
    """By the keys of records, but for `wakes` (by the name of the actors)."""

    turns: dict[str, deque[Turn]] = field(default_factory=dict)
    """Who writes to an actor, in turn."""
    known: dict[str, object] = field(default_factory=dict)
    """Records as they were seen last, with their versions."""
    workers: dict[str, ActiveWorker] = field(default_factory=dict)
    """Who handles messages now."""
    wakes: dict[str, set[WakeEvent]] = field(default_factory=dict)
    """What wakes those who look for actors with messages."""
    askers: dict[tuple[str, str], Asker] = field(default_factory=dict)
    """Who waits for an answer, by the id of the message, too: it is another message at another actor."""

    def wake(self, name: str, key: str, asked: bool) -> None:
        """A message was told."""
        worker = self.workers.get(key)
        if worker is None:
            for event in list(self.wakes.get(name, ())):
                event.set()
        elif asked or worker.idle:
            worker.event.set()

    def answer(self, key: str, message_id: str, answer: str | None, error: str | None) -> bool:
        """Tell those who wait for it; False if nobody of this coordinator does."""
        asker = self.askers.pop((key, message_id), None)
        if asker is None:
            return False
        asker.answer, asker.error = answer, error
        asker.event.set()
        return True
