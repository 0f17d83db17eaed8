"""The holder: the process that talks to the engine, so that the wrapper needs neither threads nor an engine.

1. It is forked before there is any thread, in a process group of its own: the terminal's signals do not reach it,
   and one that is sent to its pid (the one that `holdfast ls` shows) is passed on to the wrapper.
2. While it waits for the lock, a closed channel or a `done` message interrupts the wait, which withdraws the claim.
3. It updates the shared deadline repeatedly; a stale value is always earlier than the true one, never later.
4. If the wrapper has died, or does not react to a loss, the holder stops the command's group in its place.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from queue import Empty, SimpleQueue
from types import FrameType

from ... import Coordinator, Lease, connect
from ...clock import now
from ...errors import HoldfastError
from ...observe.event import Event
from ...recipes.options import Options
from ...sync.lock import Lock
from .. import exit_codes
from ..error_messages import error_message
from .channel import Channel, Message, SharedDeadline, channel_pair
from .hold_trace import HoldTrace
from .process_tree import stop_group
from .request import RunRequest

NEVER = float("inf")
_FINAL_KINDS = frozenset({"done", "gone"})


class AcquisitionCancelled(BaseException):
    """The lock is no longer wanted. Not an `Exception`: no handler on its way may treat it as an error."""


def fork_holder(request: RunRequest, deadline: SharedDeadline) -> tuple[int, Channel]:
    """Start the holder; returns its pid and our end of the channel. Only for a process with one thread."""
    wrapper = os.getpid()
    ours, theirs = channel_pair()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    try:
        ours.close()
        HolderProcess(request, theirs, deadline, wrapper).run()
    finally:
        os._exit(0)  # the wrapper's own clean-up is not ours to run


class HolderProcess:
    """Acquires, renews and releases, and reports it to the wrapper."""

    def __init__(self, request: RunRequest, channel: Channel, deadline: SharedDeadline, wrapper: int) -> None:
        self._request = request
        self._channel = channel
        self._deadline = deadline
        self._wrapper = wrapper
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._waiting = True
        self._group = 0
        self._told = True
        self._traced: HoldTrace | None = None

    def run(self) -> None:
        self._settle_in()
        request = self._request
        try:
            self._traced = HoldTrace() if request.trace else None
            with connect(
                request.url,
                namespace=request.namespace,
                request_timeout=request.request_timeout,
                on_event=self._observe,
            ) as locks:
                lease = self._lock(locks).acquire()
                self._waiting = False
                self._keep(locks, lease)
        except AcquisitionCancelled:
            pass
        except HoldfastError as error:
            self._fail(exit_codes.code_of(error), error_message(error))
        except Exception as error:  # noqa: BLE001 - the wrapper tells of it: it has the exit code
            self._fail(exit_codes.INTERNAL, f"{type(error).__name__}: {error}")
        finally:
            if self._traced is not None:
                self._traced.flush()

    def _settle_in(self) -> None:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        signal.signal(signal.SIGUSR1, self._on_cancel)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, self._pass_on)
        for number in (signal.SIGTSTP, signal.SIGTTOU, signal.SIGTTIN, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        threading.Thread(target=self._listen, name="holdfast-listen", daemon=True).start()

    def _lock(self, locks: Coordinator) -> Lock:
        request = self._request
        options: Options = {
            "ttl": request.ttl,
            "timeout": request.timeout,
            "max_hold": request.max_hold,
            "margin": request.margin,
            "hold_at_least": request.hold_at_least,
            "lock_delay": request.lock_delay,
        }
        if request.mode == "permit":
            return locks.semaphore(request.name, permits=request.permits, on_lost=self._on_lost, **options)
        if request.mode == "lock":
            return locks.lock(request.name, on_lost=self._on_lost, **options)
        sides = locks.rwlock(request.name, on_lost=self._on_lost, **options)
        return sides.read() if request.mode == "read" else sides.write()

    def _keep(self, locks: Coordinator, lease: Lease) -> None:
        """From the grant until the wrapper says that the command has ended."""
        self._note(lease)
        environment = {} if self._traced is None else self._traced.environment_of(lease)
        sequencer = str(lease.sequencer())
        self._channel.send(Message("granted", token=lease.token, sequencer=sequencer, environment=environment))
        answer_by = now() + self._request.ttl
        tick = min(1.0, max(0.02, self._request.ttl / 20))
        while True:
            match self._next(tick):
                case Message("started", pid=pid):
                    self._group = pid
                    answer_by = NEVER if lease.reason is None else answer_by
                case Message("lost"):
                    self._channel.send(Message("lost", reason=lease.reason or "expired"))
                    answer_by = now() + self._request.grace / 10
                case Message("stopping"):
                    answer_by = NEVER
                case Message("gone"):
                    self.stand_in()
                    break
                case Message("done"):
                    break
            self._note(lease)
            if now() > answer_by:  # the wrapper is suspended
                self.stand_in()
                break
        self._deadline.set(0.0)
        held = lease.release()
        reason = "" if held else lease.reason or "refused"
        self._channel.send(Message("released", reason=reason, told=self._told))

    def stand_in(self) -> None:
        """Stop the command in place of the wrapper. If that has not started the command yet, it must not any more."""
        self._deadline.set(0.0)
        end = now() + self._request.margin
        while not self._group and not self._channel.closed and now() < end:
            message = self._next(max(0.0, end - now()))  # what was said before it could see the new deadline
            self._group = message.pid
        if self._group:
            stop_group(self._group, self._request.grace)

    def _note(self, lease: Lease) -> None:
        moment = now()
        remaining = lease.remaining()
        self._deadline.set(moment + remaining if remaining else 0.0)

    def _next(self, timeout: float) -> Message:
        try:
            return self._inbox.get(timeout=timeout)
        except Empty:
            return Message("tick")

    def _listen(self) -> None:
        """On a thread: read the wrapper's messages. A final one interrupts the wait for the lock."""
        while not self._channel.closed:
            for message in self._channel.receive():
                self.hear(message)
        self.hear(Message("gone"))

    def hear(self, message: Message) -> None:
        self._inbox.put(message)
        if message.kind in _FINAL_KINDS and self._waiting:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def _on_cancel(self, number: int, frame: FrameType | None) -> None:
        if self._waiting:
            self._waiting = False
            raise AcquisitionCancelled

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if os.getppid() == self._wrapper:
            os.kill(self._wrapper, number)

    def _on_lost(self, lease: Lease) -> None:
        self._inbox.put(Message("lost"))

    def _observe(self, event: Event) -> None:
        if event.kind == "unreleased":
            self._told = False

    def _fail(self, code: int, text: str) -> None:
        self._channel.send(Message("failed", code=code, text=text, reason=traceback.format_exc()))
