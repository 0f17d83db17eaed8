"""A log in Redis Streams, and the effects of its events in an SQLite file beside it.

Effects and the acknowledgement are two steps here, so events come again. The receiver has a fence and knows what it has
done: a member claims the partition there before it looks what is left to do, and writes behind the fence. Unfenced it
looks, and writes later, as most programs do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import OutcomeUnknown
from ...fenced import SQLiteFence
from ...log import RecordedEvent
from .log_database import EFFECTS, NUMBERS, TIMEOUT_S, effects_by_part

RESOURCE = "effects/{}"


@dataclass(frozen=True, slots=True)
class RedisLog:
    """The same methods as those of `LogDatabase`."""

    url: str
    folder: Path
    fenced: bool = True

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (import_module("redis").RedisError, OSError, OutcomeUnknown)

    def connect(self) -> Any:
        """A client with the ends of a transaction, which do nothing."""
        redis = import_module("redis")
        kind: Any = type("RedisLogClient", (redis.Redis,), {"commit": lambda self: None, "rollback": lambda self: None})
        return kind.from_url(self.url, socket_timeout=TIMEOUT_S)

    def create(self) -> None:
        with closing(self._receiver()) as receiver:
            receiver.execute("PRAGMA journal_mode = WAL")
            receiver.execute(EFFECTS.format(NUMBERS["sqlite"]))

    def left_to_do(self, part: int, events: Sequence[RecordedEvent], token: int) -> list[RecordedEvent]:
        """Those without an effect; from now on the receiver refuses older members."""
        with closing(self._receiver()) as receiver, self._transaction(receiver, part, token):
            done = {event for (event,) in receiver.execute("SELECT event FROM torture_effect WHERE part = ?", (part,))}
            return [event for event in events if event.id not in done]

    def put_effects(self, connection: Any, part: int, events: Sequence[RecordedEvent], token: int) -> None:
        into = "INSERT INTO torture_effect (part, event, token) VALUES (?, ?, ?)"
        with closing(self._receiver()) as receiver, self._transaction(receiver, part, token):
            receiver.executemany(into, [(part, event.id, token) for event in events])

    def effects(self, connection: Any) -> dict[int, list[tuple[str, int]]]:
        with closing(self._receiver()) as receiver:
            return effects_by_part(receiver)

    def _receiver(self) -> sqlite3.Connection:
        receiver = sqlite3.connect(self.folder / "effects.db", timeout=TIMEOUT_S, isolation_level=None)
        receiver.execute("PRAGMA synchronous = off")  # processes are killed, the machine is not
        return receiver

    def _transaction(self, receiver: sqlite3.Connection, part: int, token: int) -> Any:
        return SQLiteFence(receiver).transaction(RESOURCE.format(part), token) if self.fenced else nullcontext()
