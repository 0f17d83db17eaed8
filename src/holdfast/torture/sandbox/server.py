"""One server process of an engine, which can be paused, killed, wiped and started again on the same port.

1. `start` returns when the server answers, not when it was started.
2. `kill` is SIGKILL for the whole process tree (PostgreSQL has a process per session, each in its own group) and
   returns when all have ended: a postmaster does not start while a child of the last one lives.
3. `wipe` removes its data: the node is again as it was before its first start.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import reaper
from .clock import Clock
from .environment import environment
from .location import Location
from .loopback import eventually
from .sandbox import DidNotStart, Sandbox

START_TIMEOUT_S = 60.0


@dataclass(slots=True)
class ServerNode:
    """One server. The callables are what its engine knows about it."""

    sandbox: Sandbox
    name: str
    folder: Path
    port: int
    words: Callable[[], list[str]]
    answers: Callable[[], bool]
    user: str | None = None
    location: Location = field(default_factory=Location)
    more_ports: tuple[int, ...] = ()
    """Where its peers reach it."""
    clock: Clock | None = None
    pristine: Path | None = None
    """What its data looked like before its first start; none: empty."""
    repair: Callable[[], None] = lambda: None
    """What an operator does when its disk has space again."""
    end_signal: signal.Signals = signal.SIGKILL
    """The signal that ends it: PostgreSQL leaves shared memory behind after SIGKILL."""
    process: subprocess.Popen[Any] | None = None
    paused: bool = False

    @property
    def host(self) -> str:
        return self.location.host

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} is not running"
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, wait: bool = True) -> None:
        if self.running:
            return
        # By `env`, after the user was changed: libfaketime makes a semaphore that belongs to whoever it starts as.
        clock = (
            []
            if self.clock is None
            else ["env", *(f"{key}={value}" for key, value in self.clock.environment().items())]
        )
        with (self.folder / "log").open("ab") as log:
            self.process = self.sandbox.spawn(
                [*self.location.argv_prefix(self.user), *clock, *self.words()],
                end_signal=self.end_signal,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self.location.identity(self.user),
            )
        if wait:
            self.await_answer()

    def await_answer(self) -> None:
        if not eventually(lambda: not self.running or self.answers(), START_TIMEOUT_S) or not self.running:
            ended = "" if self.process is None or self.running else f" (it ended with {self.process.returncode})"
            raise DidNotStart(f"{self.name} did not start{ended}: {self.log()}")

    def log(self) -> str:
        """The end of what it has written, on one line."""
        text = (self.folder / "log").read_text(errors="replace")
        return " | ".join(text.split("\n")[-8:])[-1200:]

    def kill(self) -> None:
        if self.process is None:
            return
        members = process_tree(self.pid) if self.running else []
        self.sandbox.end(self.process)
        for pid, started in members:
            reaper.end_process(pid, started)
        self.process, self.paused = None, False

    def pause(self) -> None:
        """SIGSTOP of the whole process tree."""
        self.paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.paused and self.running:
            self._signal(signal.SIGCONT)
        self.paused = False

    def _signal(self, number: signal.Signals) -> None:
        for pid, _ in process_tree(self.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # a session that has just ended

    def run(self, *words: str) -> None:
        """Run a program to its end, as the server's user, in the server's location."""
        told = [*self.location.argv_prefix(self.user), *words]
        done = subprocess.run(
            told,
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            env=environment(),
            **self.location.identity(self.user),
        )
        if done.returncode:
            raise DidNotStart(f"{words[0]}: {done.stderr.strip()[-300:]}")

    def wipe(self) -> None:
        assert not self.running, f"{self.name} still runs"
        shutil.rmtree(self.data, ignore_errors=True)
        if self.pristine is not None:
            subprocess.run(["cp", "-a", str(self.pristine), str(self.data)], check=True, env=environment())
        else:
            self.data.mkdir()
            if self.user is not None:
                shutil.chown(self.data, self.user, self.user)


def process_tree(pid: int) -> list[tuple[int, int]]:
    """A process and all that descend from it, each with the moment of its start."""
    found = [pid]
    for member in found:
        try:
            tasks = list(Path(f"/proc/{member}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it has just ended
    return [(member, started) for member in found if (started := reaper.started_at(member)) is not None]
