"""The wrapper: one loop over signals, the holder's messages, ended children and the clock.

    WAITING ── granted ──▶ RUNNING ── lost, or processes left over ──▶ STOPPING ──▶ LEAVING ──▶ OVER
       └── a signal, not acquired, an error ───────────────────────────────────────────┘
                              └── the command and its group have ended ────────────────┘

1. The deadline is looked at here too, so that a holder that hangs does not keep the command running.
2. STOPPING is TERM, and KILL after the grace, until no process is left. Only then the lock is released.
3. The command's exit code is ours, unless the lease was lost before the command ended.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from enum import Enum, auto

from ...clock import now
from ...errors import LeaseLost
from .. import exit_codes
from ..error_messages import error_message
from .channel import Message, SharedDeadline
from .command import Command
from .holder import NEVER, fork_holder
from .request import RunRequest
from .signals import ENDING, Signals

NOTICE_AFTER_S = 1.0
"""After how long a user at a terminal is told that we wait."""
POLL_INTERVAL_S = 0.05
"""How often to poll whether stopped processes have ended: not all of them are our children."""


class SupervisorState(Enum):
    WAITING = auto()
    RUNNING = auto()
    STOPPING = auto()
    LEAVING = auto()
    OVER = auto()


class Supervisor:
    """Runs one command under one lock. `report` prints a message for the user."""

    def __init__(self, request: RunRequest, report: Callable[[str], None], debug: bool = False) -> None:
        self._request = request
        self._report = report
        self._debug = debug
        self._state = SupervisorState.WAITING
        self._code = exit_codes.INTERNAL
        self._deadline = SharedDeadline()
        self._token = 0
        self._lost = False
        self._told = False
        self._next_at = now() + NOTICE_AFTER_S  # WAITING: to say so; STOPPING: to kill; LEAVING: to wait no longer

    def run(self) -> int:
        """Run to the end; returns the exit code."""
        self._holder, self._channel = fork_holder(self._request, self._deadline)
        with Signals() as self._signals:
            self._command = Command(self._request.command, self._signals, self._holder)
            try:
                while self._state is not SupervisorState.OVER:
                    self._step()
            finally:
                self._command.leave_terminal()
                self._channel.close()  # a holder that is still there takes this for our end
        return self._code

    def _step(self) -> None:
        sources = [self._signals, *(() if self._channel.closed else (self._channel,))]
        ready = select.select(sources, [], [], self._patience())[0]
        for number in self._signals.receive() if self._signals in ready else ():
            self._on_signal(number)
        for message in self._channel.receive() if self._channel in ready else ():
            self._on_message(message)
        self._reap()
        self._on_time()

    def _patience(self) -> float:
        """How long to sleep: the system's sleep stops in suspend, our clock does not, so never for long."""
        moment = self._deadline.get() if self._state is SupervisorState.RUNNING else self._next_at
        return min(POLL_INTERVAL_S if self._state is SupervisorState.STOPPING else 30.0, max(0.0, moment - now()))

    # What happens

    def _on_signal(self, number: int) -> None:
        if self._state in (SupervisorState.RUNNING, SupervisorState.STOPPING):
            self._command.signal(number)
        elif self._state is SupervisorState.WAITING and number in ENDING:
            self._leave(exit_codes.SIGNALLED + number)
        elif self._state is SupervisorState.WAITING and number == signal.SIGTSTP:
            os.kill(self._holder, signal.SIGSTOP)  # a suspended job must not be granted a lock
            self._signals.stop_ourselves()
            os.kill(self._holder, signal.SIGCONT)

    def _on_message(self, message: Message) -> None:
        waiting = self._state is SupervisorState.WAITING
        match message:
            case Message("granted") if waiting:
                self._start(message)
            case Message("failed", code=exit_codes.NOT_ACQUIRED) if waiting and self._request.skip:
                self._note(f"{self._request.name!r} is busy; skipped")
                self._leave(exit_codes.OK)
            case Message("failed", code=code, text=text) if waiting:
                self._report(message.reason if self._debug else text)
                self._leave(code)
            case Message("lost", reason=reason):
                self._lose()
                self._tell_lost(reason)
            case Message("released", reason=reason, told=told):
                if self._command.group and reason:
                    self._lost = True
                    self._tell_lost(reason, "which was noticed only when the command had ended")
                if not told:
                    self._tell_unreleased("the engine could not be reached")

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._command.group:
                self._command.note(status)
            elif pid == self._holder and not os.WIFSTOPPED(status):
                self._on_holder_ended()

    def _on_holder_ended(self) -> None:
        for message in () if self._channel.closed else self._channel.receive():  # its last words
            self._on_message(message)
        why = "the process that kept it has ended"
        if self._state is SupervisorState.RUNNING:
            self._lose()
            self._tell_lost(why)
        elif self._state is SupervisorState.WAITING:
            self._report(f"{self._request.name!r} was not acquired: {why}")
            self._leave(exit_codes.UNAVAILABLE)
        elif self._state is SupervisorState.LEAVING:
            self._over()

    def _on_time(self) -> None:
        moment = now()
        match self._state:
            case SupervisorState.WAITING if moment >= self._next_at:
                self._next_at = NEVER
                if os.isatty(2):
                    self._note(f"waiting for {self._request.name!r}; 'holdfast ls' shows who holds it")
            case SupervisorState.RUNNING if self._command.gone(False):
                self._leave(self._command.code)
            case SupervisorState.RUNNING if self._command.ended:
                self._note("the command has ended and left processes in its group; stopping them")
                self._stop()
            case SupervisorState.RUNNING if moment >= self._deadline.get():
                self._lose()  # the holder says why, if it can
            case SupervisorState.STOPPING if self._command.gone(self._lost):
                self._tell_lost("expired")
                self._leave(self._command.code)
            case SupervisorState.STOPPING if moment >= self._next_at:
                self._command.kill(self._lost)
                self._next_at = moment + POLL_INTERVAL_S
            case SupervisorState.LEAVING if moment >= self._next_at:
                os.kill(self._holder, signal.SIGKILL)
                self._tell_unreleased("the engine did not answer")
                self._over()

    # What is done

    def _start(self, grant: Message) -> None:
        self._token = grant.token
        if now() >= self._deadline.get():
            self._lost = True
            self._tell_lost("this process slept for too long when it was granted", "the command was not started")
            self._leave(exit_codes.LOST)
            return
        environment = (
            os.environ
            | grant.environment
            | {
                "HOLDFAST_NAME": self._request.name,
                "HOLDFAST_TOKEN": str(grant.token),
                "HOLDFAST_SEQUENCER": grant.sequencer,
                "HOLDFAST_URL": self._request.url,
            }
        )
        try:
            self._command.start(environment, self._channel, self._deadline)
        except OSError as error:
            code, why = self._command.why_not(error)
            self._report(why)
            self._leave(code)
            return
        self._state = SupervisorState.RUNNING

    def _lose(self) -> None:
        if self._state in (SupervisorState.RUNNING, SupervisorState.STOPPING) and not self._lost:
            self._lost = True
            self._stop()

    def _stop(self) -> None:
        kill_at = now() + self._request.grace
        self._next_at = min(self._next_at, kill_at) if self._state is SupervisorState.STOPPING else kill_at
        self._state = SupervisorState.STOPPING
        self._command.tell_to_stop(self._lost)
        self._channel.send(Message("stopping"))

    def _leave(self, code: int) -> None:
        self._code = code
        self._state = SupervisorState.LEAVING
        self._next_at = now() + self._request.request_timeout + 2.0
        self._command.leave_terminal()
        self._channel.send(Message("done"))
        if self._channel.closed:
            self._over()

    def _over(self) -> None:
        self._state = SupervisorState.OVER
        if self._lost:
            self._code = exit_codes.LOST

    def _note(self, text: str) -> None:
        """Print a notice, unless quiet."""
        if not self._request.quiet:
            self._report(text)

    def _tell_lost(self, reason: str, then: str = "the command is being stopped") -> None:
        """Report the loss once, with the first reason that is known."""
        if self._lost and not self._told:
            self._told = True
            what = error_message(LeaseLost(self._request.name, self._token, reason))
            self._report(f"{what.rpartition('; ')[0]}; {then}")

    def _tell_unreleased(self, why: str) -> None:
        if self._token:
            name, ttl = self._request.name, self._request.ttl
            self._report(f"{name!r} was not released: {why}; it ends by itself within {ttl:g} s")
