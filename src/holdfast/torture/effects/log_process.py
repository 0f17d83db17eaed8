"""One process that appends events, follows the tail and consumes partitions, and strikes itself at the worst moments.

1. An append whose outcome is not known is made again with the same ids, until it is known; and some that are.
2. The place in the tail is kept in a file of the worker, with every event that was given: a process that was started
   again goes on there.
3. A consumer commits its poll, and is stopped before it acknowledges: so its successor need not wait for it. It hands
   on its token and not its lease, which would know by itself that its time is over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import Coordinator, Partitions
from ...errors import FenceRejected, LeaseLost, NotAcquired
from ...log import (
    ANY,
    NONE,
    START,
    AlreadyAcknowledged,
    AppendConflict,
    Consumer,
    EventData,
    EventIdConflict,
    Expected,
    Position,
    append,
    tail,
)
from .log_database import LogDatabase
from .planted import remove_fence_of_log
from .redis_log import RedisLog
from .worker import WorkerContext, worker_context

PARTITIONS_COUNT = 4
STREAMS_COUNT = 12
CONSUMER = "billing"
AGAIN_RATIO = 0.1
HELD_RATIO, HELD_S = 0.05, 0.2
"""So many appends stay uncommitted for a while: others with later numbers are visible before them."""
STOPS_WHILE_WRITING_RATIO = 0.003
"""Others may have to wait for whoever is stopped inside a transaction."""
PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class PendingAppend:
    """Whose outcome is not known yet."""

    stream: str
    events: tuple[EventData, ...]
    expected: int | Expected


class LogProcess:
    """Three threads, each with a connection of its own."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._database = log_at(context.config.url, context.folder, context.config.fenced)
        self._versions: dict[str, int] = {}
        self._appends = 0
        self._pending: PendingAppend | None = None

    def work(self, locks: Coordinator) -> None:
        others = [threading.Thread(target=self._repeat, args=(step,)) for step in (self._append, self._follow)]
        for thread in others:
            thread.start()
        try:
            with locks.partitions(CONSUMER, shards=PARTITIONS_COUNT, ttl=self._context.config.ttl) as partitions:
                self._repeat(lambda connection: self._consume(connection, partitions))
        finally:
            for thread in others:
                thread.join()

    def _repeat(self, step: Callable[[Any], None]) -> None:
        """On a connection, and on another one after an error of the database."""
        ending = self._context.ending
        while not ending.is_set():
            try:
                with closing(self._database.connect()) as connection:
                    while not ending.is_set():
                        step(connection)
            except self._database.errors:
                ending.wait(PAUSE_S)

    # Appending

    def _append(self, connection: Any) -> None:
        context, chance = self._context, self._context.chance
        if self._pending is None:
            self._pending = self._draw()
        pending = self._pending
        ids = [event.id for event in pending.events]
        try:
            version = append(connection, pending.stream, pending.events, expected=pending.expected)
            context.strike("appended", STOPS_WHILE_WRITING_RATIO)
            if chance.random() < HELD_RATIO:
                context.ending.wait(chance.random() * HELD_S)
            connection.commit()
        except AppendConflict as conflict:
            connection.rollback()
            self._versions[pending.stream] = conflict.actual or 0
            context.tell("conflict", pending.stream, ids)
        except EventIdConflict as error:
            connection.rollback()
            context.tell("torn", pending.stream, str(error))
        else:
            self._versions[pending.stream] = version
            context.tell("appended", pending.stream, [version, ids])
            if chance.random() < AGAIN_RATIO:
                return  # once more, as if the reply had been lost
        self._pending = None
        context.ending.wait(chance.random() * PAUSE_S)

    def _draw(self) -> PendingAppend:
        chance, count = self._context.chance, self._context.chance.randint(1, 3)
        self._appends += 1
        stream = f"s{chance.randrange(STREAMS_COUNT)}"
        events = (EventData("happened", count, id=f"{self._context.name}-{self._appends}/{n}") for n in range(count))
        known = self._versions.get(stream, 0)
        return PendingAppend(stream, tuple(events), chance.choice((ANY, known or NONE)))

    # Following

    def _follow(self, connection: Any) -> None:
        """Until an error: a new connection begins behind the last event in the file."""
        context = self._context
        path = context.folder / f"{context.config.worker}.tail"
        written = path.read_bytes() if path.exists() else b""
        whole = written[: written.rfind(b"\n") + 1]  # a line of a process that was killed may be torn
        after = Position.parse(json.loads(whole.splitlines()[-1])[0]) if whole else START
        with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
            file.truncate(len(whole))
            file.seek(len(whole))
            while not context.ending.is_set():
                events = tail(connection, after=after)
                connection.commit()
                if not events:
                    context.ending.wait(PAUSE_S)
                    continue
                after = events[-1].position
                file.write(b"".join(json.dumps([str(e.position), e.id]).encode() + b"\n" for e in events))

    # Consuming

    def _consume(self, connection: Any, partitions: Partitions) -> None:
        context = self._context
        owned = list(partitions)
        if not owned:
            context.ending.wait(PAUSE_S)
            return
        shard = context.chance.choice(owned)
        try:
            with partitions.using(shard) as lease:
                if not self._handle(connection, shard, lease.token, lease.check):
                    context.ending.wait(PAUSE_S)
        except (FenceRejected, AlreadyAcknowledged):
            connection.rollback()
            context.tell("refused", str(shard))
        except (NotAcquired, LeaseLost):
            connection.rollback()
            context.tell("moved", str(shard))

    def _handle(self, connection: Any, shard: int, token: int, check: Callable[[], None]) -> bool:
        context = self._context
        consumer = Consumer(connection, CONSUMER, lease=token, partition=shard, partitions=PARTITIONS_COUNT)
        events = consumer.poll(context.chance.randint(1, 20))
        connection.commit()
        if not events:
            return False
        check()
        left = self._database.left_to_do(shard, events, token)
        context.strike("polled")
        self._database.put_effects(connection, shard, left, token)
        context.strike("effects", STOPS_WHILE_WRITING_RATIO)
        consumer.acknowledge(events[-1].position)
        context.strike("acknowledged", STOPS_WHILE_WRITING_RATIO)
        connection.commit()
        context.tell("completed", str(shard), len(events))
        return True


def log_at(url: str, folder: Path, fenced: bool = True) -> LogDatabase | RedisLog:
    """The log of a run."""
    return RedisLog(url, folder, fenced) if url.startswith("redis:") else LogDatabase(url, folder)


def drain(database: LogDatabase | RedisLog, shards: Partitions) -> None:
    """Consume what is left, in peace: all shards are owned here."""
    with closing(database.connect()) as connection:
        for shard in range(PARTITIONS_COUNT):
            token = shards[shard].token
            consumer = Consumer(connection, CONSUMER, lease=token, partition=shard, partitions=PARTITIONS_COUNT)
            while events := consumer.poll(1000):
                database.put_effects(connection, shard, database.left_to_do(shard, events, token), token)
                consumer.acknowledge(events[-1].position)
                connection.commit()
            connection.commit()


if __name__ == "__main__":
    context = worker_context()
    if not context.config.fenced:
        remove_fence_of_log()
    context.run(LogProcess(context).work)
