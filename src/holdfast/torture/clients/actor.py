"""An actor: takes a lock through the public API, reads and writes the resource under it, and records every step.

1. A line is written before a call and after it (see `history`); an unknown outcome is recorded as unknown.
2. It uses the lock correctly: it acquires with a timeout, checks its lease, and releases.
3. An engine that is out of reach is an outcome to record, not an error that ends the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import Coordinator, Lease, connect
from ...errors import BackendUnavailable, DeadlockDetected, FenceRejected, HoldfastError, LeaseLost, NotAcquired
from ...model import Queued
from ..history import now
from ..recorder import Recorder
from ..resource import FILE, Resource, ResourceState
from .config import ClientConfig
from .event_loop import connect_loop


@dataclass(slots=True)
class HeldLease:
    """A lease, and the number of the operation that got it."""

    lease: Lease
    of: int
    seen: ResourceState | None = None


class LockActor:
    """One client's connection to the engine and to the resource."""

    def __init__(self, config: ClientConfig, queued: Callable[[], None] = lambda: None) -> None:
        self._queued = queued
        self._config = config
        self._recorder = Recorder(config.folder, config.client)
        self._resource = Resource(Path(config.folder) / FILE, config.discipline, client=config.client)
        self._locks: Coordinator | None = None
        self._asking = 0

    def connect(self, wanted: Callable[[], bool] = lambda: True) -> bool:
        """Connect to the engine; tries again as long as `wanted()`."""
        pause = 0.01
        while self._locks is None and wanted():
            try:
                self._locks = self._connected()
            except BackendUnavailable:
                time.sleep(pause)
                pause = min(0.5, pause * 2)
        return self._locks is not None

    def _connected(self) -> Coordinator:
        config = self._config
        opened = connect_loop if config.body == "asyncio" else connect
        locks = opened(config.url, namespace=config.namespace, ttl=config.ttl, request_timeout=config.request_timeout)
        backend: Any = locks._core.backend
        take = backend.take
        in_order = "order" not in locks.promises.lacks

        def watched(*words: Any, **more: Any) -> Any:
            outcome = yield from take(*words, **more)
            if isinstance(outcome, Queued) and in_order:
                until = int((outcome.since + outcome.patience) * 1e9)
                self._recorder.point("queued", words[0].spec.name, of=self._asking, until=until)
            if isinstance(outcome, Queued):
                self._queued()
            return outcome

        backend.take = watched
        return locks

    @property
    def locks(self) -> Coordinator:
        assert self._locks is not None, "connect() first"
        return self._locks

    def reconnect(self, wanted: Callable[[], bool]) -> bool:
        """Begin anew, as a process that was restarted would."""
        locks, self._locks = self._locks, None
        if locks is not None:
            locks.close()
        return self.connect(wanted)

    def begin_anew(self) -> None:
        """In a forked child: another process has another file."""
        self._recorder = Recorder(self._config.folder, self._config.client)

    def acquire(self, name: str, timeout: float, scoped: bool = False, **options: Any) -> HeldLease | HoldfastError:
        """Acquire the lock, or return the error. `scoped`: as a `with` statement does (deadlocks are detected)."""
        recorder = self._recorder
        until = now() + int((timeout + self._config.leeway) * 1e9)
        step = recorder.invoke("acquire", name, mode="lock", weight=1, capacity=1, fair=True, until=until)
        self._asking = step.seq

        def lost(lease: Lease) -> None:
            if recorder is self._recorder:  # a forked child has lost nothing that it held
                recorder.point("lost", name, of=step.seq, token=lease.token, error=str(lease.reason))

        try:
            lock = self.locks.lock(name, timeout=timeout, on_lost=lost, **options)
            lease = lock.__enter__() if scoped else lock.acquire()
        except (NotAcquired, DeadlockDetected) as error:
            step.fail(error)
            return error
        except BackendUnavailable as error:
            step.info(error)
            return error
        step.ok(owner=lease.owner, token=lease.token)
        return HeldLease(lease, step.seq)

    def read(self, held: HeldLease) -> FenceRejected | None:
        lease = held.lease
        verb = "claim" if self._resource.discipline == "claim-before-read" else "read"
        step = self._recorder.invoke(verb, lease.name, of=held.of, token=lease.token)  # type: ignore[arg-type]
        try:
            held.seen = self._resource.read(lease.name, lease.token, seq=step.seq)
        except FenceRejected as error:
            step.fail(error)
            return error
        step.ok(parent=held.seen.version)
        return None

    def check(self, held: HeldLease) -> LeaseLost | None:
        """Whether the lease is still good, as far as its holder can tell."""
        try:
            held.lease.check()
        except LeaseLost as error:
            return error
        return None

    def write(self, held: HeldLease) -> FenceRejected | None:
        lease, seen = held.lease, held.seen
        assert seen is not None, "read() first"
        step = self._recorder.invoke("write", lease.name, of=held.of, token=lease.token, parent=seen.version)
        try:
            version = self._resource.write(lease.name, lease.token, seen, seq=step.seq)
        except FenceRejected as error:
            step.fail(error)
            return error
        step.ok(version=version)
        return None

    def release(self, held: HeldLease) -> bool | HoldfastError:
        lease = held.lease
        step = self._recorder.invoke("release", lease.name, of=held.of, token=lease.token)
        try:
            kept = lease.release()
        except HoldfastError as error:
            step.info(error)
            return error
        step.ok(held=kept)
        return kept

    def close(self) -> None:
        if self._locks is not None:
            self._locks.close()
        self._resource.close()
        self._recorder.close()
