"""Code of a user's (hooks, listeners of events), run beside whoever has news for it, on threads of its own.

1. Whoever tells never waits: it starts a thread at most. So a hook that is slow, hangs or calls `sys.exit` costs no
   lease, and no other hook, until `most` of them hang at once.
2. With `most` of 1 the order is kept: events are told one after the other.
3. A thread ends when there is nothing left to tell.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from ..observe.log_exception import log_exception

A = TypeVar("A")


class Beside:
    """Runs what it is given, soon."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: deque[Callable[[], None]] = deque()
        self._workers: set[threading.Thread] = set()

    def call(self, function: Callable[[A], object], argument: A) -> None:
        """Have `function(argument)` called."""
        self._jobs.append(lambda: _call(function, argument))
        if len(self._workers) < self._most:
            worker = threading.Thread(target=self._work, name="holdfast-hooks", daemon=True)
            self._workers.add(worker)
            try:
                worker.start()
            except RuntimeError:  # too many threads, or the interpreter is ending: `drain` sees to it
                self._workers.discard(worker)

    def _work(self) -> None:
        me = threading.current_thread()
        while self._jobs:
            self._workers.add(me)
            self._run_all()
            self._workers.discard(me)  # and look again: who came before this line has started nobody

    def _run_all(self) -> None:
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:
                return
            job()

    def drain(self, within: float) -> None:
        """Wait for what has been given, for so long at most; not for what the caller itself is part of."""
        end = time.monotonic() + within
        for worker in list(self._workers):
            while worker in self._workers and worker is not threading.current_thread():
                if (left := end - time.monotonic()) <= 0:
                    return
                try:
                    worker.join(left)
                except RuntimeError:  # another thread is just starting it
                    time.sleep(0.001)
        if not self._workers:
            self._run_all()


def _call(function: Callable[[A], object], argument: A) -> None:
    try:
        function(argument)
    except SystemExit:
        log_exception("%r at %r called sys.exit(), which ends a thread only; use a signal", function, argument)
    except BaseException:  # noqa: BLE001  it is not our code
        log_exception("%r raised at %r", function, argument)
