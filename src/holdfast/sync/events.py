"""Waiting of threads: for an event, or for the first of several things."""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from .._core.flow import File, Source
from ..clock import now as clock
from .connection import LONGEST_WAIT_S, ThreadConnection


class ThreadEvent:
    """Wakes a waiting thread. It may be set from anywhere, even by the garbage collector in the middle of a `set`."""

    __slots__ = ("_file", "_sets")

    def __init__(self) -> None:
        self._sets: SimpleQueue[None] = SimpleQueue()
        self._file: tuple[socket.socket, socket.socket] | None = None
        """Made once somebody waits for more than this event."""

    def set(self) -> None:
        self._sets.put(None)
        if (file := self._file) is not None:
            try:
                file[1].send(b"!")
            except OSError:
                pass  # it is full, and so will wake whoever waits

    def wait(self, timeout: float | None) -> None:
        try:
            self._sets.get(timeout=LONGEST_WAIT_S if timeout is None else min(timeout, LONGEST_WAIT_S))
        except Empty:
            return  # the time has come by itself
        self.reset()

    def reset(self) -> bool:
        """Whether it was set."""
        if self._file is not None:
            try:
                while self._file[0].recv(64):
                    pass
            except BlockingIOError:
                pass  # all is read
        found = False
        try:
            while True:
                self._sets.get_nowait()
                found = True
        except Empty:
            return found

    def fileno(self) -> int:
        """Readable once the event is set from now on; so look at `reset` after this, and before waiting."""
        if self._file is None:
            mine, theirs = socket.socketpair()
            mine.setblocking(False)
            theirs.setblocking(False)
            self._file = (mine, theirs)
        return self._file[0].fileno()

    def __del__(self) -> None:
        if self._file is not None:
            for each in self._file:
                each.close()


class ThreadFileWatch:
    """A file that one thread at a time waits for."""

    __slots__ = ("_number", "_poll")

    def __init__(self, number: int) -> None:
        self._number = number
        self._poll = select.poll()
        self._poll.register(number, select.POLLIN)

    def fileno(self) -> int:
        return self._number

    def wait(self, deadline: float) -> bool:
        """False once the time is over."""
        while True:
            left = deadline - clock()
            if self._poll.poll(max(0.0, min(left, LONGEST_WAIT_S)) * 1000):
                return True
            if left <= 0:
                return False

    def close(self) -> None:
        pass  # whoever waits is woken by what comes on the file


def wait_any(sources: Sequence[Source], deadline: float) -> Sequence[Source]:
    """Those that are ready; none at the deadline."""
    if len(sources) == 1 and isinstance(sources[0], ThreadFileWatch):
        return sources if sources[0].wait(deadline) else ()
    poll = select.poll()
    by_file: dict[int, Source] = {}
    masks: dict[int, int] = {}
    for source in sources:
        if isinstance(source, File):
            number, mask = source.number, select.POLLOUT if source.writable else select.POLLIN
        else:
            assert isinstance(source, ThreadConnection | ThreadEvent | ThreadFileWatch), "of another driver"
            number, mask = source.fileno(), select.POLLIN
            if number < 0:  # a connection that was closed
                return [source]
        by_file[number] = source
        masks[number] = masks.get(number, 0) | mask  # one file may be waited for both ways
        poll.register(number, masks[number])
    while True:
        ready = [each for each in sources if _ready(each)]
        if ready:
            return ready
        left = deadline - clock()
        found = poll.poll(max(0.0, min(left, LONGEST_WAIT_S)) * 1000)
        if found:
            ready = [by_file[number] for number, _ in found if not isinstance(by_file[number], ThreadEvent)]
            if ready:
                return ready
        elif left <= 0:
            return []


def _ready(source: Source) -> bool:
    if isinstance(source, ThreadEvent):
        return source.reset()
    return isinstance(source, ThreadConnection) and (source.closed or source.readable())
