"""A terminal with a person at it: a pseudo-terminal, a shell with job control, keys and what appears."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from typing import Self

from tests.cli.harness import LONG

CTRL_C = "\x03"
CTRL_Z = "\x1a"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Screen:
    """Runs a program on a terminal of its own; by default an interactive shell."""

    def __init__(self, environment: dict[str, str], program: tuple[str, ...] = ("bash", "--norc", "-i")) -> None:
        environment = {**environment, "PS1": "$ ", "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.execvpe(program[0], program, environment)
        self._seen = ""

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def until(self, text: str) -> str:
        """Read until `text` appears; answers with all since the last call."""
        end = time.monotonic() + LONG
        while text not in self._seen:
            ready = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, f"{text!r} did not appear; there is {self._seen!r}"
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # the last process has gone
                data = b""
            assert data, f"{text!r} did not appear before the end; there is {self._seen!r}"
            self._seen = _COLOURS.sub("", self._seen + data.decode(errors="replace"))
        before, found, self._seen = self._seen.partition(text)
        return before + found

    def end(self) -> int:
        """Wait until the program has ended by itself; answers with its exit code."""
        end = time.monotonic() + LONG
        while True:
            ready = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, "it has not ended"
            try:
                if not os.read(self._terminal, 65536):
                    break
            except OSError:  # the last process has gone
                break
        pid, self._pid = self._pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._terminal)  # hangs up
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
