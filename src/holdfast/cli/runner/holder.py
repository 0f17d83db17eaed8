"""The holder: the process that talks to the engine, so that the wrapper needs neither threads nor an engine.

1. It is forked before there is any thread, in a process group of its own: the terminal's signals do not reach it,
   and one that is sent to its pid (the one that `holdfast ls` shows) is passed on to the wrapper.
2. While it waits for the lock, the end of the talk, or a wish to leave, interrupts the wait, which leaves the line.
3. It writes down the deadline again and again; whoever reads it later reads an earlier one, never a later.
4. A wrapper that is gone, or that does not answer to a loss, is stood in for: the holder stops the command's group.
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
from .. import exits
from ..plain_words import plain_words
from .channel import Channel, Deadline, Message, channel_pair
from .family import stop_group
from .order import Order

NEVER = float("inf")
_FAREWELLS = frozenset({"done", "gone"})


class Cancelled(BaseException):
    """Nobody wants the lock any more. Not an Exception: nothing on its way may take it for an error."""


def fork_holder(order: Order, deadline: Deadline) -> tuple[int, Channel]:
    """Start the holder; answers with its pid and our end of the talk. Only for a process with one thread."""
    wrapper = os.getpid()
    ours, theirs = channel_pair()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    try:
        ours.close()
        Holder(order, theirs, deadline, wrapper).run()
    finally:
        os._exit(0)  # the wrapper's own clean-up is not ours to run


class Holder:
    """Acquires, keeps and releases, and tells of it."""

    def __init__(self, order: Order, channel: Channel, deadline: Deadline, wrapper: int) -> None:
        self._order = order
        self._channel = channel
        self._deadline = deadline
        self._wrapper = wrapper
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._waiting = True
        self._group = 0
        self._told = True

    def run(self) -> None:
        self._settle_in()
        order = self._order
        try:
            with connect(
                order.url,
                namespace=order.namespace,
                request_timeout=order.request_timeout,
                on_event=self._observe,
            ) as locks:
                lease = self._lock(locks).acquire()
                self._waiting = False
                self._keep(locks, lease)
        except Cancelled:
            pass
        except HoldfastError as error:
            self._fail(exits.code_of(error), plain_words(error))
        except Exception as error:  # noqa: BLE001 - the wrapper tells of it: it has the exit code
            self._fail(exits.INTERNAL, f"{type(error).__name__}: {error}")

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
        order = self._order
        options: Options = {
            "ttl": order.ttl,
            "timeout": order.timeout,
            "max_hold": order.max_hold,
            "margin": order.margin,
            "hold_at_least": order.hold_at_least,
            "lock_delay": order.lock_delay,
        }
        if order.mode == "permit":
            return locks.semaphore(order.name, permits=order.permits, on_lost=self._on_lost, **options)
        if order.mode == "lock":
            return locks.lock(order.name, on_lost=self._on_lost, **options)
        sides = locks.rwlock(order.name, on_lost=self._on_lost, **options)
        return sides.read() if order.mode == "read" else sides.write()

    def _keep(self, locks: Coordinator, lease: Lease) -> None:
        """From the grant until the wrapper says that the command has ended."""
        self._note(lease)
        self._channel.send(Message("granted", token=lease.token, sequencer=str(lease.sequencer())))
        answer_by = now() + self._order.ttl
        tick = min(1.0, max(0.02, self._order.ttl / 20))
        while True:
            match self._next(tick):
                case Message("started", pid=pid):
                    self._group = pid
                    answer_by = NEVER if lease.reason is None else answer_by
                case Message("lost"):
                    self._channel.send(Message("lost", reason=lease.reason or "expired"))
                    answer_by = now() + self._order.grace / 10
                case Message("stopping"):
                    answer_by = NEVER
                case Message("gone"):
                    self.stand_in()
                    break
                case Message("done"):
                    break
            self._note(lease)
            if now() > answer_by:  # the wrapper sleeps
                self.stand_in()
                break
        self._deadline.set(0.0)
        held = lease.release()
        reason = "" if held else lease.reason or "refused"
        self._channel.send(Message("released", reason=reason, told=self._told))

    def stand_in(self) -> None:
        """Do what the wrapper would have to do. If it has not started the command, it must not do so any more."""
        self._deadline.set(0.0)
        end = now() + self._order.margin
        while not self._group and not self._channel.closed and now() < end:
            message = self._next(max(0.0, end - now()))  # what was said before it could see the new deadline
            self._group = message.pid
        if self._group:
            stop_group(self._group, self._order.grace)

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
        """On a thread: what the wrapper says. Its last words interrupt a wait for the lock."""
        while not self._channel.closed:
            for message in self._channel.receive():
                self.hear(message)
        self.hear(Message("gone"))

    def hear(self, message: Message) -> None:
        self._inbox.put(message)
        if message.kind in _FAREWELLS and self._waiting:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def _on_cancel(self, number: int, frame: FrameType | None) -> None:
        if self._waiting:
            self._waiting = False
            raise Cancelled

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
