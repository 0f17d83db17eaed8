# Generated from src/holdfast/log/aio/relay.py by `make generate`: change that file, not this one.
"""An outbox relay: publishes what was committed, at least once, in order per stream; for blocking connections.

1. One relay at a time: the holder of the lock, whose token moves the cursor of the consumer `name`. A relay that was
   paused may publish once more what its successor has published already, and cannot move the cursor.
2. An event is acknowledged after it was published. A crash between the two publishes it again: the receiver knows it by
   its id, or by stream and version, which only rise.
3. A `publish` that raises holds up its stream only, and is tried again after a pause that doubles, for ever; the relay
   goes on with other streams, up to `window` events behind it. With `on_failure="stop"` the error ends the relay.
4. An error of the database or of the lock's engine ends nothing: it is logged, and after a pause the relay goes on with
   a new lease and a new connection. An error of holdfast that no retry mends (`Misconfigured`, `Truncated`) is raised.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from typing import Any, Literal

from ..._core.backoff import ceiling
from ...clock import now
from ...errors import BackendUnavailable, FenceRejected, HoldfastError, LeaseLost, Misconfigured
from ...model import check_seconds
from ..model import MAX_ID_BYTES, MAX_LIMIT_COUNT, RecordedEvent, check_bounded, check_count
from ..relay_queue import PublishFailed, RelayQueue, check_hook, check_stop
from .consumer import Consumer
from .runner import Lease, Lock, acquire_unless, call, close, commit, wait_for_stop

logger = logging.getLogger("holdfast")
RETRIED = (BackendUnavailable, FenceRejected, LeaseLost)
"""Errors of holdfast after which the relay goes on: with a new lease, once it has one."""


class Relay:
    """Calls `publish(event)` for every event of the log.

    `connect()` gives a connection that is the relay's own; `lock` is an ordinary lock of holdfast.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        publish: Callable[[RecordedEvent], object],
        *,
        lock: Lock,
        name: str = "outbox",
        on_failure: Literal["retry", "stop"] = "retry",
        limit: int = 100,
        window: int = 1000,
        idle: float = 1.0,
        base: float = 0.1,
        cap: float = 30.0,
        allow_truncated: bool = False,
    ) -> None:
        if not callable(connect) or not callable(publish):
            raise Misconfigured("a relay takes two functions: connect(), which opens a connection, and publish(event)")
        check_hook("publish", publish, name, awaits=False)
        if not isinstance(lock, Lock):
            raise Misconfigured(f"lock= is a lock of a coordinator, as locks.lock('outbox', ttl=10), not {lock!r:.80}")
        if on_failure not in ("retry", "stop"):
            raise Misconfigured(f"on_failure= is 'retry' or 'stop', not {on_failure!r}")
        check_bounded(name, "consumer", MAX_ID_BYTES)
        check_count(limit, "limit=", 1, MAX_LIMIT_COUNT)
        check_count(window, "window=", limit)
        for what, seconds in (("idle", idle), ("base", base), ("cap", cap)):
            check_seconds(what, seconds, name)
        self._connect, self._publish, self._lock = connect, publish, lock
        self._name, self._on_failure, self._limit, self._window = name, on_failure, limit, window
        self._idle, self._base, self._cap, self._allow_truncated = idle, base, cap, allow_truncated

    def run(self, stop: threading.Event) -> None:
        """Publish until `stop` is set: after the event in hand, and what was published is acknowledged."""
        check_stop(stop, f"the relay {self._name!r}", awaits=False)
        failures = 0
        while not stop.is_set():
            began = now()
            try:
                lease = acquire_unless(self._lock, stop)
                if lease is None:
                    return
                with lease:
                    self._lead(lease, stop)
            except PublishFailed as failed:
                raise failed.args[0] from None
            except Exception as error:
                if isinstance(error, HoldfastError) and not isinstance(error, RETRIED):
                    raise
                logger.warning("relay %r was interrupted, and goes on: %r", self._name, error)
                failures = failures + 1 if now() - began < self._cap else 0
                wait_for_stop(stop, random.random() * ceiling(failures, self._base, self._cap))

    def _lead(self, lease: Lease, stop: threading.Event) -> None:
        connection = self._connect()
        try:
            consumer = Consumer(connection, self._name, lease=lease)
            queue = RelayQueue(self._base, self._cap)
            while not stop.is_set():
                fed = self._read(connection, consumer, queue)
                try:
                    self._publish_due(queue, lease, stop)
                except PublishFailed:
                    self._acknowledge(connection, consumer, queue)
                    raise
                self._acknowledge(connection, consumer, queue)
                lease.check()
                if not fed and not stop.is_set() and queue.due(now()) is None:
                    next_at = queue.next_at()
                    pause = self._idle if next_at is None else min(self._idle, next_at - now())
                    wait_for_stop(stop, max(pause, 0.0))
        finally:
            try:
                close(connection)
            except Exception as error:  # noqa: BLE001  what ended the lead says why, also a cancellation
                logger.warning("relay %r could not close its connection: %r", self._name, error)

    def _read(self, connection: Any, consumer: Consumer, queue: RelayQueue) -> bool:
        room = min(self._limit, self._window - len(queue))
        if room <= 0:
            return False
        events = consumer.poll(room, after=queue.read, allow_truncated=self._allow_truncated)
        commit(connection)
        queue.feed(events)
        return bool(events)

    def _publish_due(self, queue: RelayQueue, lease: Lease, stop: threading.Event) -> None:
        """Publish what is due, at most `limit` events: then the cursor is moved."""
        for _ in range(self._limit):
            event = queue.due(now())
            if event is None or stop.is_set():
                return
            lease.check()
            try:
                call(self._publish, event)
            except Exception as error:
                if self._on_failure == "stop":
                    raise PublishFailed(error) from error
                failures = queue.failed(event, now(), random.random())
                logger.warning(
                    "relay %r: event %s of %r was not published (%d times now), and holds up its stream: %r",
                    *(self._name, event.id, event.stream, failures, error),
                )
            else:
                queue.published(event)

    def _acknowledge(self, connection: Any, consumer: Consumer, queue: RelayQueue) -> None:
        position = queue.acknowledgeable()
        if position is not None:
            consumer.acknowledge(position)
            commit(connection)
            queue.acknowledged(position)
