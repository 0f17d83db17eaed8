"""The director: makes the processes, stops one of them at the worst moment, and counts what is left.

A process that is stopped is known to be stopped before the story goes on; a word that it is waiting for is written
before it wakes, so that it goes on at once, as after any pause.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...clock import now
from ...errors import HoldfastError
from . import ledger

TTL = 1.0
AMOUNTS = {"A": 5, "B": 20}
PATIENCE = 15.0
"""For one step, on a machine that is busy with other things."""


class DemoFailed(HoldfastError):
    """The story did not go as told."""


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the timeline: when (seconds from the start of the act), who, what, and the facts."""

    at: float
    process: str
    kind: str
    facts: dict[str, Any]


@dataclass(slots=True)
class Act:
    """One telling of the story, and what was left of it."""

    fenced: bool
    steps: list[Step] = field(default_factory=list)
    balance: int = 0

    @property
    def acknowledged(self) -> int:
        return self._count("acknowledged")

    @property
    def refused(self) -> int:
        return self._count("refused")

    @property
    def expected(self) -> int:
        """The balance with everything that was acknowledged."""
        return ledger.OPENING + sum(int(s.facts["amount"]) for s in self.steps if s.kind == "acknowledged")

    @property
    def in_ledger(self) -> int:
        """How many of the updates the balance holds: their amounts are such that no two make up a third."""
        rest, count = self.balance - ledger.OPENING, 0
        for amount in sorted(AMOUNTS.values(), reverse=True):
            if rest >= amount:
                rest, count = rest - amount, count + 1
        return count

    @property
    def lost(self) -> int:
        return self.acknowledged - self.in_ledger

    def _count(self, kind: str) -> int:
        return sum(step.kind == kind for step in self.steps)


class Worker:
    """A process of the story. `told` are its steps as they come."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name = name
        self.told: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli.demo.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told.put(json.loads(line))
        self.told.put(None)

    def say(self) -> None:
        assert self.process.stdin is not None
        print("go", file=self.process.stdin, flush=True)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise DemoFailed(f"process {self.name} ended instead of being stopped")

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def play(folder: Path, fenced: bool, show: Callable[[Step], None]) -> Act:
    """One act: A is paused between its check and its write, and B comes in between."""
    act = Act(fenced)
    began = now()
    file = folder / f"ledger-{'fenced' if fenced else 'unfenced'}.db"
    ledger.create(file)

    def note(process: str, kind: str, at: float, facts: dict[str, Any]) -> None:
        step = Step(at - began, process, kind, facts)
        act.steps.append(step)
        if kind not in ("ready", "end"):
            show(step)

    def follow(worker: Worker, until: str) -> None:
        while True:
            try:
                told = worker.told.get(timeout=PATIENCE)
            except queue.Empty:
                raise DemoFailed(f"process {worker.name} has not come to {until!r} in {PATIENCE:g} s") from None
            if told is None:
                raise DemoFailed(f"process {worker.name} has ended before {until!r}")
            note(worker.name, kind := told.pop("kind"), told.pop("at"), told)
            if kind == until:
                return

    url = f"sqlite://{quote(str(folder))}/locks.db"
    common = [url, str(file), "fenced" if fenced else "unfenced"]
    workers = [Worker(name, [*common, str(AMOUNTS[name]), str(TTL), "think" * (name == "A")]) for name in "AB"]
    a, b = workers
    try:
        for worker in workers:
            follow(worker, "ready")
        began = now()
        a.say()
        follow(a, "checked")
        a.stop()
        note("kernel", "stopped", now(), {})
        a.say()  # heard when it wakes
        b.say()
        follow(b, "end")
        note("kernel", "continued", now(), {})
        a.resume()
        follow(a, "end")
    finally:
        for worker in workers:
            worker.end()
    act.balance = ledger.balance(file)
    return act
