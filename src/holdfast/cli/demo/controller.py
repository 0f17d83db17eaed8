"""The controller of the demonstration: starts the processes, stops one at the worst moment, and counts the updates.

A process is known to be stopped before the next step; the message that it waits for is written before it resumes, so
that it goes on at once, as after any pause.
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

TTL_S = 1.0
AMOUNTS = {"A": 5, "B": 20}
STEP_TIMEOUT_S = 15.0
"""The limit for one step, on a busy machine."""


class DemoFailed(HoldfastError):
    """The demonstration did not go as planned."""


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One line of the timeline: when (seconds from the start of the run), who, what, and the facts."""

    at: float
    process: str
    kind: str
    facts: dict[str, Any]


@dataclass(slots=True)
class DemoRun:
    """One run of the demonstration, and its outcome."""

    fenced: bool
    steps: list[DemoStep] = field(default_factory=list)
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
        return ledger.OPENING_BALANCE + sum(int(s.facts["amount"]) for s in self.steps if s.kind == "acknowledged")

    @property
    def in_ledger(self) -> int:
        """How many of the updates the balance holds: no two of their amounts add up to a third."""
        rest, count = self.balance - ledger.OPENING_BALANCE, 0
        for amount in sorted(AMOUNTS.values(), reverse=True):
            if rest >= amount:
                rest, count = rest - amount, count + 1
        return count

    @property
    def lost(self) -> int:
        return self.acknowledged - self.in_ledger

    def _count(self, kind: str) -> int:
        return sum(step.kind == kind for step in self.steps)


class DemoWorker:
    """A process of the demonstration. `told` has its steps as they come."""

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


def run_demo(folder: Path, fenced: bool, show: Callable[[DemoStep], None]) -> DemoRun:
    """One run: A is paused between its check and its write, and B acquires the lock meanwhile."""
    demo_run = DemoRun(fenced)
    began = now()
    file = folder / f"ledger-{'fenced' if fenced else 'unfenced'}.db"
    ledger.create(file)

    def note(process: str, kind: str, at: float, facts: dict[str, Any]) -> None:
        step = DemoStep(at - began, process, kind, facts)
        demo_run.steps.append(step)
        if kind not in ("ready", "end"):
            show(step)

    def follow(worker: DemoWorker, until: str) -> None:
        while True:
            try:
                told = worker.told.get(timeout=STEP_TIMEOUT_S)
            except queue.Empty:
                raise DemoFailed(f"process {worker.name} has not come to {until!r} in {STEP_TIMEOUT_S:g} s") from None
            if told is None:
                raise DemoFailed(f"process {worker.name} has ended before {until!r}")
            note(worker.name, kind := told.pop("kind"), told.pop("at"), told)
            if kind == until:
                return

    url = f"sqlite://{quote(str(folder))}/locks.db"
    common = [url, str(file), "fenced" if fenced else "unfenced"]
    workers = [DemoWorker(name, [*common, str(AMOUNTS[name]), str(TTL_S), "think" * (name == "A")]) for name in "AB"]
    a, b = workers
    try:
        for worker in workers:
            follow(worker, "ready")
        began = now()
        a.say()
        follow(a, "checked")
        a.stop()
        note("kernel", "stopped", now(), {})
        a.say()  # it reads this when it resumes
        b.say()
        follow(b, "end")
        note("kernel", "continued", now(), {})
        a.resume()
        follow(a, "end")
    finally:
        for worker in workers:
            worker.end()
    demo_run.balance = ledger.balance(file)
    return demo_run
