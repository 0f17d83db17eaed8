"""The blocking API in the shape of the asyncio one, so that a promise is written once, for both.

1. Each task of the program has a thread of its own, and all that the task calls runs there: so an actor is a task on
   one side and a thread on the other, as it is in life.
2. What to await is read off the asyncio type: its coroutine functions are the blocking calls.
3. A cancelled task leaves its thread to itself: a blocked thread cannot be cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from functools import wraps
from queue import SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

from ..aio import actor_system as aio_actor_system
from ..aio import attempt as aio_attempt
from ..aio import coordinator as aio_coordinator
from ..aio import election as aio_election
from ..aio import lease as aio_lease
from ..aio import limiter as aio_limiter
from ..aio import lock as aio_lock
from ..aio import multi as aio_multi
from ..aio import once as aio_once
from ..aio import partitions as aio_partitions
from ..aio import rwlock as aio_rwlock
from ..sync import (
    actor_system,
    attempt,
    coordinator,
    election,
    lease,
    limiter,
    lock,
    multi,
    once,
    partitions,
    rwlock,
)

ASYNC_TYPES: dict[type, type] = {
    actor_system.ActorSystem: aio_actor_system.ActorSystem,
    coordinator.Coordinator: aio_coordinator.Coordinator,
    rwlock.RWLock: aio_rwlock.RWLock,
    election.Election: aio_election.Election,
    lease.Lease: aio_lease.Lease,
    limiter.Limiter: aio_limiter.Limiter,
    once.Once: aio_once.Once,
    attempt.Attempt: aio_attempt.Attempt,
    lock.Lock: aio_lock.Lock,
    multi.LockAll: aio_multi.LockAll,
    multi.Leases: aio_multi.Leases,
    partitions.Partitions: aio_partitions.Partitions,
    threading.Event: asyncio.Event,
}

HOOKS = ("on_assigned", "on_lost", "on_revoking")


class Threads:
    """One thread per task, ended with it."""

    def __init__(self) -> None:
        self._queues: WeakKeyDictionary[asyncio.Task[Any], SimpleQueue[Any]] = WeakKeyDictionary()

    async def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a blocking function on the thread of the current task."""
        task = asyncio.current_task()
        assert task is not None
        if (queue := self._queues.get(task)) is None:
            queue = self._queues[task] = SimpleQueue()
            threading.Thread(target=_work, args=(queue,), name=task.get_name(), daemon=True).start()
            task.add_done_callback(lambda _, queue=queue: queue.put(None))  # type: ignore[misc]
        future: Future[Any] = Future()
        queue.put((future, function, args, options))
        return await asyncio.wrap_future(future)


def _work(queue: SimpleQueue[Any]) -> None:
    while (job := queue.get()) is not None:
        future, function, args, options = job
        if not future.set_running_or_notify_cancel():
            continue
        try:
            result = function(*args, **options)
        except BaseException as error:  # noqa: BLE001  raised again in the task
            future.set_exception(error)
        else:
            future.set_result(result)


def adapt(target: Any, threads: Threads) -> Any:
    """An object of the blocking API in the shape of its asyncio type; anything else as it is."""
    return AsyncAdapter(target, threads) if type(target) in ASYNC_TYPES else target


class AsyncAdapter:
    """Looks like the asyncio type of its target."""

    def __init__(self, target: Any, threads: Threads) -> None:
        self._target = target
        self._threads = threads

    def __getattr__(self, name: str) -> Any:
        async_type = getattr(ASYNC_TYPES[type(self._target)], name, None)
        value = getattr(self._target, name)
        if inspect.iscoroutinefunction(async_type):

            async def blocking(*args: Any, **options: Any) -> Any:
                return self._wrap(await self._threads.call(value, *map(self._unwrap, args), **options))

            return blocking
        if inspect.isasyncgenfunction(async_type):
            return lambda *args: self._iterate(value(*args))
        if inspect.isfunction(async_type):
            return lambda *args, **options: self._wrap(value(*map(self._unwrap, args), **self._hooks(options)))
        return self._wrap(value)

    def _wrap(self, value: Any) -> Any:
        return adapt(value, self._threads)

    def _unwrap(self, value: Any) -> Any:
        """Coroutine functions that are handed over (the body of a leader) run in the loop, while a thread waits."""
        return self._bridge(value) if inspect.iscoroutinefunction(value) else value

    def _hooks(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: self._hook(value) if name in HOOKS else value for name, value in options.items()}

    def _hook(self, hook: Any) -> Any:
        return (lambda *args: hook(*map(self._wrap, args))) if callable(hook) else hook

    def _bridge(self, function: Callable[..., Any]) -> Callable[..., Any]:
        loop = asyncio.get_running_loop()

        @wraps(function)
        def bridged(*args: Any, **options: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(function(*map(self._wrap, args), **options), loop).result()

        return bridged

    async def _iterate(self, iterator: Iterator[Any]) -> AsyncIterator[Any]:
        end = object()
        while (value := await self._threads.call(next, iterator, end)) is not end:
            yield value

    async def __aenter__(self) -> Any:
        return self._wrap(await self._threads.call(self._target.__enter__))

    async def __aexit__(self, *error: Any) -> Any:
        return await self._threads.call(self._target.__exit__, *error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        decorated = self._target(self._bridge(function))

        @wraps(decorated)
        async def blocking(*args: Any, **options: Any) -> Any:
            return await self._threads.call(decorated, *args, **options)

        return blocking

    def __getitem__(self, key: str) -> Any:
        return self._wrap(self._target[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._target)

    def __len__(self) -> int:
        return len(self._target)

    def __repr__(self) -> str:
        return repr(self._target)
