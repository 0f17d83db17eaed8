"""A client process as the controller sees it: paused, resumed, killed, started again and, in the end, closed.

1. There is one pause at a time, and the code that stopped a process resumes it. A pause is reported to `note` when it
   is over. A client that stops itself is resumed once the kernel shows it as stopped: an earlier signal would be lost.
2. A client that was killed starts again under its name, as another process: its file in the history is another one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..history import FaultRecord, now
from ..sandbox import Sandbox
from ..sandbox.loopback import eventually
from ..sandbox.sandbox import lines_of
from .config import ClientConfig

END_TIMEOUT_S = 20.0


class ClientProcess:
    """One client of a run, over all its restarts."""

    def __init__(self, sandbox: Sandbox, config: ClientConfig, note: Callable[[FaultRecord], None]) -> None:
        self.sandbox = sandbox
        self._config = config
        self._note = note
        self._pausing = threading.Lock()
        self._closing = threading.Event()
        self.lives = 0
        self._readers: list[threading.Thread] = []
        self.failures: list[str] = []
        self._process = self._born()

    @property
    def name(self) -> str:
        return self._config.client

    @property
    def pid(self) -> int:
        return self._process.pid

    def _born(self) -> subprocess.Popen[str]:
        config = replace(self._config, seed=self._config.seed * 1000 + self.lives)
        self.lives += 1
        process = self.sandbox.spawn(
            [sys.executable, "-m", "holdfast.torture.clients.worker", config.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for listen in (self._follow, self._complaints):
            reader = threading.Thread(target=listen, args=(process,), daemon=True)
            reader.start()
            self._readers.append(reader)
        return process

    def _follow(self, process: subprocess.Popen[str]) -> None:
        """Resume the client from each pause of its own, and note the other faults that it injects into itself."""
        for line in lines_of(process.stdout):
            told = json.loads(line)
            if "fault" in told:
                self.hear(told)
                continue
            with self._pausing:
                self._closing.wait(told["seconds"])
                wake(process)
            self._note(FaultRecord("pause-aimed", f"client:{self.name}", told["time"], now(), told["at"]))

    def hear(self, told: dict[str, Any]) -> None:
        """A fault that the client injected into itself. A forked child that could misuse the lease fails the run."""
        misuse = told.get("misuse", "")
        if misuse:
            self.failures.append(f"client {self.name}: {misuse}")
        self._note(FaultRecord(told["fault"], f"client:{self.name}", told["time"], now(), misuse))

    def _complaints(self, process: subprocess.Popen[str]) -> None:
        text = "".join(lines_of(process.stderr))
        if text:
            self.failures.append(text)

    def pause(self, seconds: float) -> None:
        """Stop it wherever it is."""
        with self._pausing:
            begin = now()
            signal_process(self._process, signal.SIGSTOP)
            self._closing.wait(seconds)
            signal_process(self._process, signal.SIGCONT)
        self._note(FaultRecord("pause", f"client:{self.name}", begin, now()))

    def kill(self) -> None:
        begin = now()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # with a child that it has forked; not reaped: its own number
        self.sandbox.end(self._process)
        self._note(FaultRecord("kill-client", f"client:{self.name}", begin, now()))
        if not self._closing.is_set():
            self._process = self._born()

    def close(self) -> None:
        """End the pauses and ask the client to finish its work and exit."""
        self._closing.set()
        assert self._process.stdin is not None
        signal_process(self._process, signal.SIGCONT)
        self._process.stdin.close()

    def ended(self) -> bool:
        """Wait for its end; False if it had to be killed."""
        try:
            code = self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
        self.sandbox.end(self._process)
        for reader in self._readers:
            reader.join()
        if code:
            self.failures.append(f"client {self.name} ended with code {code}")
        return code is not None


def wake(process: subprocess.Popen[str]) -> None:
    """Continue a process that is about to stop itself, after it did."""
    eventually(lambda: process.poll() is not None or is_stopped(process.pid), 30.0, 0.001)
    signal_process(process, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return True  # it has ended


def signal_process(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """A signal to a process that may have ended meanwhile."""
    if process.poll() is None:
        process.send_signal(number)
