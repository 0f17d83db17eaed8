"""Signals as data: each arrives as a number on a pipe that the supervisor's loop reads.

A signal that was ignored when we were started (nohup, a background job of a script) stays ignored, for us and for the
command.
"""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any

FORWARDED = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT),
)
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""The signals that end the wait for the lock."""


class Signals:
    """Catches what is forwarded, and SIGCHLD. Ignores SIGTTOU, so that the terminal can change hands."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (*FORWARDED, signal.SIGCHLD):
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
                self._before[number] = signal.signal(number, _note)
        self._before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        return self._reader

    def receive(self) -> list[int]:
        """Those that have come, in order; one that has come twice is one, as it would be without us."""
        try:
            return list(dict.fromkeys(os.read(self._reader, 4096)))
        except BlockingIOError:
            return []

    def restore_in_child(self) -> None:
        """Between fork and exec: what comes now is for the command, which starts as we were started."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if handler is signal.SIG_IGN else signal.SIG_DFL)

    def stop_ourselves(self) -> None:
        """Suspend our own process group, as the terminal's Ctrl-Z would. Returns when continued."""
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)


def _note(number: int, frame: FrameType | None) -> None:
    """The wake-up pipe has it already; a handler must stand here so that the signal does not act."""
