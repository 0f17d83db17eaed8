"""The real `holdfast` executable, on an embedded file of the test's own.

What a command does is observed through pipes and files that it writes itself, so that no test guesses how long
something takes. Whatever a test starts, it ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

import holdfast

HOLDFAST = str(Path(sys.executable).parent / "holdfast")
LONG = float(os.environ.get("HOLDFAST_TEST_PATIENCE", "20"))
"""No step takes as long as this, even on a busy machine; a test that waits so long has failed."""


class Running:
    """A process that was started: its lines as they come, and in the end its exit code."""

    def __init__(self, arguments: list[str], environment: dict[str, str], **options: Any) -> None:
        self.process = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        self._rest = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line on stdout; fails if none comes."""
        assert self.process.stdout is not None
        end = time.monotonic() + LONG
        while b"\n" not in self._rest:
            ready = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                pytest.fail(f"no line came; it wrote {self._rest!r}, and to stderr {self._complaints()!r}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> Done:
        """Wait until it has ended by itself."""
        out, err = self.process.communicate(timeout=LONG)
        return Done(self.process.returncode, (self._rest + out).decode(), err.decode())

    def _complaints(self) -> bytes:
        """What there is on stderr, without waiting for more."""
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        return self.process.stderr.read() or b""

    def clean_up(self) -> None:
        """Whoever is left may hold the pipes open, so nothing is read."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Done:
    """How it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"<exit {self.code}, stdout {self.out!r}, stderr {self.err!r}>"


class Cli:
    """`holdfast` with a file of its own as engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "locks.db"
        self.url = f"sqlite://{self.file}"
        self.environment = {**os.environ, "HOLDFAST_URL": self.url, "COLUMNS": "120"}
        self.locks = holdfast.connect(self.url)
        self._started: list[Running] = []

    def start(self, *arguments: str, **options: Any) -> Running:
        running = Running([HOLDFAST, *arguments], self.environment, **options)
        self._started.append(running)
        return running

    def run(self, *arguments: str) -> Done:
        return self.start(*arguments).end()

    def holder_of(self, name: str) -> holdfast.ClaimView:
        (view,) = (view for view in self.locks.survey(name) if view.name == name)
        (holder,) = view.holders
        return holder

    def waiting_for(self, name: str) -> int:
        return sum(len(view.waiters) for view in self.locks.survey(name) if view.name == name)

    def is_free(self, name: str) -> bool:
        return not any(view.name == name for view in self.locks.survey(name))

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.code == 0, done
        return json.loads(done.out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._started:
            running.clean_up()
        self.locks.close()


def eventually(truth: Callable[[], bool]) -> None:
    """Look until it is true: for what others do and nobody announces."""
    end = time.monotonic() + LONG
    while not truth():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether it runs: neither gone nor a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
