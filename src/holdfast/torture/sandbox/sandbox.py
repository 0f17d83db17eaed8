"""A sandbox: the folder of one run, and a list of everything that was started for it.

1. Everything that is started is entered here before it is used, and the reaper is told: see `sandbox.reaper`.
2. Leaving the sandbox ends all of it, by its own pid, in the reverse order of its start.
3. What this machine cannot do raises `NotAvailable` with the reason; the run lists it as "not run: reason".
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ...errors import HoldfastError
from . import reaper
from .environment import environment


class NotAvailable(HoldfastError):
    """This machine cannot do it: a program is missing, or the right to use it."""


class DidNotStart(HoldfastError):
    """It is installed and does not start: that is an error, not a limit of the machine."""


class Sandbox:
    """The processes, folders and mounts of a run. A context manager."""

    def __init__(self, prefix: str = "holdfast-torture-") -> None:
        words = [sys.executable, "-P", reaper.__file__]
        self._reaper = subprocess.Popen(
            words, stdin=subprocess.PIPE, start_new_session=True, text=True, env=environment()
        )
        self._mutex = threading.Lock()
        self._processes: dict[int, tuple[subprocess.Popen[Any], signal.Signals]] = {}
        self._others: list[tuple[str, str]] = []
        self.folder = Path(tempfile.mkdtemp(prefix=prefix))
        self.folder.chmod(0o711)  # servers of other users pass through
        self.enter("folder", str(self.folder))

    def enter(self, kind: str, name: str, started: int = 0) -> None:
        """Record what was made, so that it is removed."""
        with self._mutex:
            if kind != "process":
                self._others.append((kind, name))
            self._tell("add", kind, name, started)

    def spawn(
        self, words: list[str], end_signal: signal.Signals = signal.SIGKILL, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a process that terminal signals do not reach. `end_signal` ends it when the sandbox is closed."""
        try:
            process = subprocess.Popen(words, start_new_session=True, **({"env": environment()} | options))
        except FileNotFoundError as error:
            raise NotAvailable(f"{words[0]} is not installed") from error
        with self._mutex:
            self._processes[process.pid] = (process, end_signal)
            self._tell("add", "process", str(process.pid), reaper.started_at(process.pid) or 0)
        return process

    def end(self, process: subprocess.Popen[Any], how: signal.Signals = signal.SIGKILL, patience: float = 30.0) -> None:
        """End a process of this sandbox and wait for it; after `patience`, by SIGKILL."""
        if process.poll() is None:
            process.send_signal(how)
            if how is not signal.SIGKILL:
                process.send_signal(signal.SIGCONT)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(patience)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                try:
                    pipe.close()  # waits for whoever reads it, who sees its end now
                except OSError:
                    pass  # what was not yet written to it is lost, as it should be
        reaper.sweep(process.pid)
        with self._mutex:
            self._processes.pop(process.pid, None)
            self._tell("done", "process", str(process.pid), 0)

    def new_folder(self, name: str, user: str | None = None) -> Path:
        """A folder of a server, owned by the user that it runs as."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        if user is not None:
            shutil.chown(folder, user, user)
        return folder

    def _tell(self, *line: object) -> None:
        assert self._reaper.stdin is not None
        try:
            print(json.dumps(line), file=self._reaper.stdin, flush=True)
        except OSError:
            pass  # without a reaper the ordinary end still cleans up

    def close(self) -> None:
        for process, end_signal in reversed(list(self._processes.values())):
            process.send_signal(signal.SIGCONT)
            self.end(process, end_signal)
        for kind, name in sorted(self._others, key=lambda entry: reaper.KINDS.index(entry[0])):
            reaper.end(kind, name, 0)
        if self._reaper.stdin is not None and not self._reaper.stdin.closed:
            for kind, name in self._others:
                self._tell("done", kind, name, 0)
            self._reaper.stdin.close()
        self._reaper.wait(30)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


def lines_of(pipe: Any) -> Iterator[str]:
    """The lines that a process says, until it or its pipe ends."""
    try:
        yield from pipe
    except ValueError:
        return  # closed by `Sandbox.end`, between two lines


def is_root() -> bool:
    return os.getuid() == 0
