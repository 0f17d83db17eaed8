"""A worker: `python -m holdfast.torture.clients.worker ORDER`. Reads, thinks, writes under the lock, again and again.

At a failpoint it may stop itself (SIGSTOP), as its order says and its seed decides; it says so first, and the director
wakes it up. So a pause is aimed at a point between two statements, which no signal from outside could hit.
It may also fork while it holds (see `prefork`), one child at a time; what the child could do and must not is told.
It ends in order when its stdin closes.
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
from .actor import Actor, Held
from .order import Failpoint, Order
from .prefork import Child, fork

PATIENCE = 5
"""So many failures in a row, and it connects anew."""


class Worker:
    """One client of a run."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._chance = random.Random(f"{order.seed}/{order.client}")
        self._actor = Actor(order)
        self._failures = 0
        self._child: Child | None = None
        self._ending = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        sys.stdin.read()
        self._ending.set()

    def run(self) -> None:
        if self._actor.connect(lambda: not self._ending.is_set()):
            while not self._ending.is_set():
                self._section()
                if self._failures >= PATIENCE:
                    self._failures = 0
                    self._actor.reconnect(lambda: not self._ending.is_set())
                self._ending.wait(self._chance.uniform(0, 0.2 * self._order.think))
        self._hear_child(wait=True)
        self._actor.close()

    def _disturb(self) -> None:
        """What only an event loop can suffer."""
        if self._order.body != "asyncio":
            return
        locks: Any = self._actor.locks  # see `event_loop.LoopLocks`
        if self._chance.random() < self._order.cancels:
            locks.cancel_after_s = self._chance.uniform(0, 2 * self._order.think)
            self._tell(fault="cancel")
        if self._chance.random() < self._order.blocks:
            locks.loop.block(self._chance.uniform(0, 2) * self._order.ttl)
            self._tell(fault="block-loop")

    def _fork(self, held: Held) -> None:
        if self._child is None and self._chance.random() < self._order.forks:
            self._child = fork(self._actor, held, self._chance)

    def _hear_child(self, wait: bool = False) -> None:
        """Tell what the child found, once it is over."""
        child = self._child
        if child is None or not child.over(wait):
            return
        self._child = None
        match child.misdeed():
            case None:
                self._tell(time=child.began, fault="fork-hung")
            case misdeed:
                self._tell(time=child.began, fault="fork", misdeed=misdeed)

    def _tell(self, **what: object) -> None:
        print(json.dumps({"time": now(), **what}), flush=True)

    def _section(self) -> None:
        self._hear_child()
        self._disturb()
        held = self._actor.acquire(self._order.name, self._order.timeout)
        if not isinstance(held, Held):
            self._failures += not isinstance(held, NotAcquired)
            self._ending.wait(self._chance.uniform(0, 0.05))
            return
        self._failures = 0
        self._fork(held)
        self._at("after-acquire")
        if self._actor.read(held) is None:
            self._at("after-read")
            time.sleep(self._chance.uniform(0, 2 * self._order.think))
            if self._actor.check(held) is None:
                self._at("before-write")
                self._actor.write(held)
        self._at("before-release")
        self._actor.release(held)

    def _at(self, failpoint: Failpoint) -> None:
        if self._chance.random() < self._order.aim.get(failpoint, 0.0):
            shortest, longest = self._order.pause
            seconds = shortest + (longest - shortest) * self._chance.random() ** 2.5
            self._tell(at=failpoint, seconds=seconds)
            os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    logging.getLogger("holdfast").addHandler(logging.NullHandler())  # the history tells of losses and refusals
    Worker(Order.read(sys.argv[1])).run()
