"""The command's life: from its start to the end of everybody whom it started.

1. The holder hears of the command before there is one, and the deadline is looked at after that: so either it is
   stopped by a holder that knows it, or it never starts.
2. It has the terminal as a job of a shell would. Stopped by the terminal, it suspends us too, so that the shell
   notices, and continues with us. A SIGSTOP is somebody's own wish, and stays between them.
3. On a loss everybody must end, also who left the group; else those who left did so on purpose.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence

from ...clock import now
from .. import exit_codes
from . import process_tree
from .channel import Channel, Message, SharedDeadline
from .signals import Signals
from .terminal import Terminal


class Command:
    """One command in a process group of its own. `group` is 0 until it is started; `code` is good once it `ended`."""

    def __init__(self, words: Sequence[str], signals: Signals, holder: int) -> None:
        self._words = words
        self._signals = signals
        self._holder = holder
        self._prctl = process_tree.become_subreaper()
        self._terminal = Terminal()
        self.group = 0
        self.ended = False
        self.code = exit_codes.INTERNAL

    def start(self, environment: Mapping[str, str], channel: Channel, deadline: SharedDeadline) -> None:
        """Raises OSError if it cannot be executed."""
        interactive = self._terminal.wanted_at_start

        def prepare() -> None:
            channel.send(Message("started", pid=os.getpid()))
            if now() >= deadline.get():
                os._exit(exit_codes.LOST)
            if interactive:
                self._terminal.claim_in_child()
            self._signals.restore_in_child()

        if interactive:
            self._terminal.note_given()
        self.group = process_tree.start(self._words, environment, self._prctl, prepare)

    def why_not(self, error: OSError) -> tuple[int, str]:
        """The exit code and the words for a failed start."""
        program = self._words[0]
        found = os.path.exists(program) if "/" in program else shutil.which(program, os.F_OK) is not None
        code = exit_codes.NOT_EXECUTABLE if found else exit_codes.NOT_FOUND
        return code, f"cannot run {program!r}: {os.strerror(error.errno or 0)}"

    def signal(self, number: int) -> None:
        if number == signal.SIGCONT:
            self._terminal.give(self.group)
        process_tree.signal_group(self.group, number)

    def note(self, status: int) -> None:
        """What waitpid said of it."""
        if os.WIFSTOPPED(status):
            self._on_stopped(os.WSTOPSIG(status))
            return
        code = os.waitstatus_to_exitcode(status)
        self.code = code if code >= 0 else exit_codes.SIGNALLED - code
        self.ended = True

    def _on_stopped(self, number: int) -> None:
        if number == signal.SIGSTOP or not self._terminal.exists:
            return
        wants_terminal = number in (signal.SIGTTIN, signal.SIGTTOU)
        if not (wants_terminal and self._terminal.ours):
            self._terminal.take_back()
            self._signals.stop_ourselves()
        self.signal(signal.SIGCONT)

    def gone(self, lost: bool) -> bool:
        """Whether nobody is left."""
        return self.ended and not process_tree.signal_group(self.group, 0) and not self._strays(lost)

    def tell_to_stop(self, lost: bool) -> None:
        for number in (signal.SIGTERM, signal.SIGCONT):
            process_tree.signal_group(self.group, number)
            process_tree.signal_each(self._strays(lost), number)

    def kill(self, lost: bool) -> None:
        process_tree.signal_group(self.group, signal.SIGKILL)
        process_tree.signal_each(self._strays(lost), signal.SIGKILL)

    def leave_terminal(self) -> None:
        self._terminal.take_back()

    def _strays(self, lost: bool) -> list[int]:
        return process_tree.descendants(os.getpid(), self._holder) if lost else []
