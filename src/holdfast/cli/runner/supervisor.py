"""The wrapper: one loop over signals, the holder's messages, ended children and the clock.

    WAITING ── granted ──▶ RUNNING ── lost, or processes left over ──▶ STOPPING ──▶ LEAVING ──▶ OVER
       └── a signal, not acquired, an error ───────────────────────────────────────────┘
                              └── the command and its group have ended ────────────────┘

1. The deadline is looked at here too, so that a holder that hangs does not keep the command running.
2. STOPPING is TERM, and KILL after the grace, until nobody is left. Only then the lock is let go.
3. The command's exit code is ours, unless the lease was lost before the command ended.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
from collections.abc import Callable
from enum import Enum, auto

from ...clock import now
from ...errors import LeaseLost
from .. import exits
from . import family
from .channel import Deadline, Message
from .holder import fork_holder
from .order import Order
from .signals import ENDING, Signals
from .terminal import Terminal

POLL = 0.05
"""How often to look whether what was told to stop has ended: not all of it is our child."""


class State(Enum):
    WAITING = auto()
    RUNNING = auto()
    STOPPING = auto()
    LEAVING = auto()
    OVER = auto()


class Supervisor:
    """Runs one command under one lock. `report` is given what the user should read."""

    def __init__(self, order: Order, report: Callable[[str], None], debug: bool = False) -> None:
        self._order = order
        self._report = report
        self._debug = debug
        self._state = State.WAITING
        self._code = exits.INTERNAL
        self._deadline = Deadline()
        self._group = 0
        self._ended = False  # the command itself; its children may go on
        self._token = 0
        self._lost: str | None = None
        self._kill_at = 0.0
        self._leave_by = 0.0

    def run(self) -> int:
        """Until the end; answers with the exit code."""
        self._holder, self._channel = fork_holder(self._order, self._deadline)
        self._prctl = family.become_subreaper()
        self._terminal = Terminal()
        try:
            with Signals() as self._signals:
                while self._state is not State.OVER:
                    self._step()
        finally:
            self._terminal.take_back()
        return self._code

    def _step(self) -> None:
        sources = [self._signals, *(() if self._channel.closed else (self._channel,))]
        ready = select.select(sources, [], [], max(0.0, self._patience()))[0]
        for number in self._signals.receive() if self._signals in ready else ():
            self._on_signal(number)
        for message in self._channel.receive() if self._channel in ready else ():
            self._on_message(message)
        self._reap()
        self._on_time()

    def _patience(self) -> float:
        """How long to sleep: the system's sleep stops in suspend, our clock does not, so never for long."""
        match self._state:
            case State.RUNNING:
                return min(30.0, self._deadline.get() - now())
            case State.STOPPING:
                return min(POLL, max(0.001, self._kill_at - now()))
            case State.LEAVING:
                return self._leave_by - now()
        return 30.0

    # What happens

    def _on_signal(self, number: int) -> None:
        if self._group and not self._gone():
            if number == signal.SIGCONT:
                self._terminal.give(self._group)
            family.signal_group(self._group, number)
        elif self._state is State.WAITING:
            if number in ENDING:
                self._leave(exits.SIGNALLED + number)
            elif number == signal.SIGTSTP:  # a suspended job must not be granted a lock
                os.kill(self._holder, signal.SIGSTOP)
                self._signals.stop_ourselves()
                os.kill(self._holder, signal.SIGCONT)

    def _on_message(self, message: Message) -> None:
        match message:
            case Message("granted") if self._state is State.WAITING:
                self._start(message)
            case Message("failed", code=exits.NOT_ACQUIRED) if self._order.skip:
                self._report(f"{self._order.name!r} is busy; skipped")
                self._leave(exits.OK)
            case Message("failed", code=code, text=text) if self._state is State.WAITING:
                self._report(message.reason if self._debug else text)
                self._leave(code)
            case Message("lost", reason=reason):
                self._lose(reason)
            case Message("released", reason=reason, told=told):
                if self._group and reason and self._lost is None:
                    self._lost = reason
                    self._tell_lost("and this was noticed only when the command had ended")
                if not told:
                    self._report(self._unreleased("the engine could not be reached"))

    def _start(self, grant: Message) -> None:
        order = self._order
        self._token = grant.token
        if now() >= self._deadline.get():  # we slept through it
            self._lost = "expired"
            self._tell_lost("before the command was started")
            self._leave(exits.LOST)
            return
        environment = os.environ | {
            "HOLDFAST_NAME": order.name,
            "HOLDFAST_TOKEN": str(grant.token),
            "HOLDFAST_SEQUENCER": grant.sequencer,
            "HOLDFAST_URL": grant.url,
        }
        interactive = self._terminal.wanted_at_start

        def prepare() -> None:
            if interactive:
                self._terminal.claim_in_child()
            self._signals.restore_in_child()

        if interactive:
            self._terminal.note_given()
        try:
            self._group = family.start(order.command, environment, self._prctl, prepare)
        except OSError as error:
            program = order.command[0]
            found = ("/" in program and os.path.exists(program)) or shutil.which(program, os.F_OK) is not None
            self._report(f"can not run {shlex.quote(program)}: {os.strerror(error.errno or 0)}")
            self._leave(exits.NOT_EXECUTABLE if found else exits.NOT_FOUND)
            return
        self._state = State.RUNNING
        self._channel.send(Message("started", pid=self._group))

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._group and os.WIFSTOPPED(status):
                self._on_stopped(os.WSTOPSIG(status))
            elif pid == self._group:
                self._ended = True
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else exits.SIGNALLED - code
            elif pid == self._holder and not os.WIFSTOPPED(status):
                self._on_holder_ended()

    def _on_stopped(self, number: int) -> None:
        """Job control stopped the command. SIGSTOP is somebody's own wish, and stays between them."""
        if number == signal.SIGSTOP or not self._terminal.exists or self._state is not State.RUNNING:
            return
        if number in (signal.SIGTTIN, signal.SIGTTOU) and self._terminal.give(self._group):
            family.signal_group(self._group, signal.SIGCONT)
            return
        self._terminal.take_back()
        self._signals.stop_ourselves()
        self._terminal.give(self._group)
        family.signal_group(self._group, signal.SIGCONT)

    def _on_holder_ended(self) -> None:
        for message in () if self._channel.closed else self._channel.receive():  # its last words
            self._on_message(message)
        if self._state in (State.RUNNING, State.WAITING):
            self._lose("the process that kept it has ended")
        elif self._state is State.LEAVING:
            self._over()

    def _on_time(self) -> None:
        moment = now()
        match self._state:
            case State.RUNNING if self._ended:
                if self._gone():
                    self._leave(self._code)
                else:
                    self._report("the command has ended and left processes in its group; stopping them")
                    self._stop()
            case State.RUNNING if moment >= self._deadline.get():
                self._lose("expired")
            case State.STOPPING if self._gone():
                self._leave(exits.LOST if self._lost else self._code)
            case State.STOPPING if moment >= self._kill_at:
                family.signal_group(self._group, signal.SIGKILL)
                family.signal_each(self._strays(), signal.SIGKILL)
                self._kill_at = moment + POLL
            case State.LEAVING if moment >= self._leave_by:
                os.kill(self._holder, signal.SIGKILL)
                if self._token:
                    self._report(self._unreleased("the engine did not answer"))
                self._over()

    # What is done

    def _lose(self, reason: str) -> None:
        if self._lost is not None or self._state not in (State.WAITING, State.RUNNING, State.STOPPING):
            return
        self._lost = reason
        if not self._group:
            self._report(f"the lock {self._order.name!r} was not acquired: {reason}")
            self._leave(exits.UNAVAILABLE)
            return
        self._tell_lost("the command is being stopped")
        self._stop()

    def _stop(self) -> None:
        kill_at = now() + self._order.grace
        self._kill_at = min(self._kill_at, kill_at) if self._state is State.STOPPING else kill_at
        self._state = State.STOPPING
        for number in (signal.SIGTERM, signal.SIGCONT):
            family.signal_group(self._group, number)
            family.signal_each(self._strays(), number)
        self._channel.send(Message("stopping"))

    def _gone(self) -> bool:
        return self._ended and not family.signal_group(self._group, 0) and not self._strays()

    def _strays(self) -> list[int]:
        """Descendants outside the group. On a loss they must end too; otherwise they left it on purpose."""
        return family.descendants(os.getpid(), self._holder) if self._lost else []

    def _leave(self, code: int) -> None:
        self._code = code
        self._state = State.LEAVING
        self._terminal.take_back()
        self._leave_by = now() + self._order.request_timeout + 2.0
        self._channel.send(Message("done"))
        if self._channel.closed:
            self._over()

    def _over(self) -> None:
        self._state = State.OVER
        if self._group and self._lost:
            self._code = exits.LOST

    def _tell_lost(self, then: str) -> None:
        what = str(LeaseLost(self._order.name, self._token, self._lost or "expired"))
        self._report(f"{what.rpartition('; ')[0]}; {then}")

    def _unreleased(self, why: str) -> str:
        return f"{self._order.name!r} was not released: {why}; it ends by itself within {self._order.ttl:g} s"
