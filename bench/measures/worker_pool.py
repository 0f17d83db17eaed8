"""Workers that contend for one lock: processes that live for the whole measurement and take turns on
command.

A turn, as the parent commands it: `Open` (every process opens the contender and starts its threads, which
then stand ready), `Go` (all begin at one moment of the machine-wide monotonic clock), `Close`. Logs stay in
memory until the end of the turn. The parent waits for every answer with a limit, and ends the processes if
one does not answer.

The processes are forked from one that has imported what they need and has no other thread (`forkserver`): a hundred
of them would take minutes to import it each, and gigabytes.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from bench import registry
from bench.model import TAKE_TIMEOUT_S, Target, WorkerLock
from bench.stats import Hold

ANSWER_TIMEOUT_S = 4 * TAKE_TIMEOUT_S
SAMPLE_LIMIT_COUNT = 200_000
"""Holds of one worker in one turn, at most."""


class WorkerFailed(Exception):
    """A contender raised, or did not answer, inside a worker."""


@dataclass(frozen=True, slots=True)
class Open:
    """Stand ready with `threads` workers for the lock `name`."""

    contender: str
    name: str
    threads: int


@dataclass(frozen=True, slots=True)
class Go:
    """Contend from `begin` to `end`, keeping the lock for `hold` and staying away for `rest` seconds."""

    begin: float
    end: float
    hold: float
    rest: float


@dataclass(frozen=True, slots=True)
class Close:
    """Let go of the contender."""


class Pool:
    """A number of processes, each ready to run the threads of any contender of one engine."""

    def __init__(self, processes: int, engine: str, target: Target) -> None:
        forked = multiprocessing.get_context("forkserver")
        forked.set_forkserver_preload(["holdfast", __name__, f"bench.engines.{engine}"])
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for _ in range(processes):
            ours, theirs = forked.Pipe()
            process = forked.Process(target=_work, args=(theirs, engine, target), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def ask(self, command: Open | Go | Close, processes: int) -> list[Any]:
        """Command the first `processes` and collect their answers."""
        pipes = self._pipes[:processes]
        for pipe in pipes:
            pipe.send(command)
        limit = time.monotonic() + ANSWER_TIMEOUT_S
        answers = []
        for pipe in pipes:
            try:
                if not pipe.poll(max(0.0, limit - time.monotonic())):
                    raise WorkerFailed(f"a worker did not answer within {ANSWER_TIMEOUT_S:.0f} s")
                answers.append(pipe.recv())
            except EOFError:
                raise WorkerFailed("a worker's process died") from None
        for answer in answers:
            if isinstance(answer, str):
                raise WorkerFailed(answer)
        return answers

    def end(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(2.0)
            if process.is_alive():
                process.kill()
                process.join()


def holds_of(answers: Sequence[Sequence[bytes]]) -> list[Hold]:
    """The logs of all threads of all processes, with workers numbered through."""
    holds: list[Hold] = []
    logs = [log for answer in answers for log in answer]
    for worker, log in enumerate(logs):
        times = array("d", log)
        holds += [Hold(worker, *times[at : at + 3]) for at in range(0, len(times), 3)]
    return holds


def _work(pipe: Connection, engine: str, target: Target) -> None:
    """The life of one process of the pool."""
    lock_factory: _Threads | None = None
    while True:
        try:
            command = pipe.recv()
        except EOFError:
            break
        try:
            if isinstance(command, Open):
                if lock_factory is not None:
                    lock_factory.close()
                lock_factory = _Threads(engine, target, command)
                pipe.send(None)
            elif isinstance(command, Go) and lock_factory is not None:
                pipe.send(lock_factory.go(command))
            elif lock_factory is not None:
                lock_factory.close()
                lock_factory = None
                pipe.send(None)
        except Exception as error:  # noqa: BLE001 - told to the parent, which reports it
            pipe.send(f"{type(error).__name__}: {error}")


class _Threads:
    """The threads of one process, each with its `WorkerLock`."""

    def __init__(self, engine: str, target: Target, command: Open) -> None:
        self._stack = ExitStack()
        opener = registry.contender(engine, command.contender).lock_factory
        assert opener is not None
        new_worker_lock = self._stack.enter_context(opener(target, command.name))
        self._hands = [new_worker_lock() for _ in range(command.threads)]

    def go(self, command: Go) -> list[bytes]:
        logs: list[array[float]] = [array("d") for _ in self._hands]
        errors: list[Exception] = []

        def guarded(worker_lock: WorkerLock, log: Callable[[Sequence[float]], None]) -> None:
            try:
                contend(worker_lock, command, log)
            except Exception as error:  # noqa: BLE001 - raised again below, in the thread that answers
                errors.append(error)

        threads = [
            threading.Thread(target=guarded, args=(worker_lock, log.extend), daemon=True)
            for worker_lock, log in zip(self._hands, logs, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return [log.tobytes() for log in logs]

    def close(self) -> None:
        self._stack.close()


def contend(worker_lock: WorkerLock, command: Go, log: Callable[[Sequence[float]], None]) -> None:
    """One worker's turn. A lock that comes after the end is given back at once and not logged as held."""
    take, release, clock, sleep = worker_lock.take, worker_lock.release, time.monotonic, time.sleep
    hold, rest, end = command.hold, command.rest, command.end
    sleep(max(0.0, command.begin - clock()))
    for _ in range(SAMPLE_LIMIT_COUNT):
        asked = clock()
        if asked >= end:
            return
        take()
        granted = clock()
        if hold and granted < end:
            sleep(hold)
        released = clock()
        release()
        log((asked, granted, released))
        if rest:
            sleep(rest)
