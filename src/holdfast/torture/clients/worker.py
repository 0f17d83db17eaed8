"""A client of a run: `python -m holdfast.torture.clients.worker CONFIG`. Reads, thinks and writes under the lock.

At a failpoint it may stop itself (SIGSTOP), as its configuration says and its seed decides; it announces that first,
and the controller resumes it. So a pause is aimed at a point between two statements, which no signal from outside
could hit. It may also fork while it holds (see `prefork`), one child at a time, and reports a misuse by the child.
It exits when its stdin closes.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
from typing import Any

from ...errors import NotAcquired
from ..history import now
from .actor import HeldLease, LockActor
from .config import ClientConfig, Failpoint
from .prefork import ForkedChild, fork

RECONNECT_FAILURE_COUNT = 5
"""After so many failures in a row it connects anew."""


class ClientWorker:
    """One client of a run."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._chance = random.Random(f"{config.seed}/{config.client}")
        self._actor = LockActor(config)
        self._failures = 0
        self._child: ForkedChild | None = None
        self._ending = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        sys.stdin.read()
        self._ending.set()

    def run(self) -> None:
        if self._actor.connect(lambda: not self._ending.is_set()):
            while not self._ending.is_set():
                self._section()
                if self._failures >= RECONNECT_FAILURE_COUNT:
                    self._failures = 0
                    self._actor.reconnect(lambda: not self._ending.is_set())
                self._ending.wait(self._chance.uniform(0, 0.2 * self._config.think))
        self._hear_child(wait=True)
        self._actor.close()

    def _disturb(self) -> None:
        """Inject the faults that only an event loop can have."""
        if self._config.body != "asyncio":
            return
        locks: Any = self._actor.locks  # see `event_loop.LoopLocks`
        if self._chance.random() < self._config.cancels:
            locks.cancel_after_s = self._chance.uniform(0, 2 * self._config.think)
            self._tell(fault="cancel")
        if self._chance.random() < self._config.blocks:
            locks.loop.block(self._chance.uniform(0, 2) * self._config.ttl)
            self._tell(fault="block-loop")

    def _fork(self, held: HeldLease) -> None:
        if self._child is None and self._chance.random() < self._config.forks:
            self._child = fork(self._actor, held, self._chance)

    def _hear_child(self, wait: bool = False) -> None:
        """Report what the child found, once it has ended."""
        child = self._child
        if child is None or not child.over(wait):
            return
        self._child = None
        match child.misuse():
            case None:
                self._tell(time=child.began, fault="fork-hung")
            case misuse:
                self._tell(time=child.began, fault="fork", misuse=misuse)

    def _tell(self, **what: object) -> None:
        print(json.dumps({"time": now(), **what}), flush=True)

    def _section(self) -> None:
        self._hear_child()
        self._disturb()
        held = self._actor.acquire(self._config.name, self._config.timeout)
        if not isinstance(held, HeldLease):
            self._failures += not isinstance(held, NotAcquired)
            self._ending.wait(self._chance.uniform(0, 0.05))
            return
        self._failures = 0
        self._fork(held)
        self._at("after-acquire")
        if self._actor.read(held) is None:
            self._at("after-read")
            time.sleep(self._chance.uniform(0, 2 * self._config.think))
            if self._actor.check(held) is None:
                self._at("before-write")
                self._actor.write(held)
        self._at("before-release")
        self._actor.release(held)

    def _at(self, failpoint: Failpoint) -> None:
        if self._chance.random() < self._config.aim.get(failpoint, 0.0):
            shortest, longest = self._config.pause
            seconds = shortest + (longest - shortest) * self._chance.random() ** 2.5
            self._tell(at=failpoint, seconds=seconds)
            os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    logging.getLogger("holdfast").addHandler(logging.NullHandler())  # the history tells of losses and refusals
    ClientWorker(ClientConfig.from_json(sys.argv[1])).run()
