"""`memory://NAME`: one engine per name and process, shared by all its coordinators, blocking and asyncio alike."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import uuid
from collections.abc import Callable
from typing import overload

from ... import clock
from ...errors import Misconfigured
from ...model import Promises
from ...ports import AsyncWire, Wire
from ..execute import Moment, push_to, us
from ..queue_backend import Push, QueueReply, QueueRequest, Take, Taken
from ..record_backend import RecordBackend
from .store import MemoryStore

PROMISES = Promises(
    frozenset({"fencing", "linearizable", "shared", "counting", "records"}),
    {"durable": "memory ends with the process; use sqlite:// or a server"},
)


class MemoryEngine:
    """Lines behind a mutex. Its clock is looked up at each request: a test may replace it at any time (`FakeClock`)."""

    def __init__(
        self,
        url: str = "memory://",
        request_timeout: float = 5.0,
        calendar_us: Callable[[], int] | None = None,
    ) -> None:
        self.url = url
        self.backend = RecordBackend("memory", uuid.uuid4().hex[:12], PROMISES, 0.001, request_timeout)
        self.store = MemoryStore()
        self._calendar_us = calendar_us
        self._mutex = threading.Lock()
        self._frozen = 0
        self.doors: dict[str, Callable[[str, Push], None]] = {}
        self._addresses = itertools.count(1)
        self._host = socket.gethostname()

    @overload
    def carry_out(self, request: Take, address: str) -> list[Taken]: ...

    @overload
    def carry_out(self, request: QueueRequest, address: str) -> QueueReply: ...

    def carry_out(self, request: QueueRequest, address: str) -> QueueReply:
        with self._mutex:
            calendar = (self._calendar_us or clock.calendar_us)()
            at = Moment(us(clock.now()), calendar, address, self._host, os.getpid())
            reply, promoted = self.store.carry_out(request, at)
        for _, place in promoted:
            if (door := self.doors.get(place.wake)) is not None:
                door(place.owner, push_to(place))
        return reply

    def join(self, deliver: Callable[[str, Push], None]) -> str:
        address = str(next(self._addresses))
        self.doors[address] = deliver
        return address

    def leave(self, address: str) -> None:
        self.doors.pop(address, None)

    def before_fork(self) -> None:
        """No verb is half done while a fork copies the lines."""
        if self._frozen == 0:
            self._mutex.acquire()
        self._frozen += 1

    def after_fork_in_parent(self) -> None:
        self._frozen -= 1
        if self._frozen == 0:
            self._mutex.release()

    def after_fork_in_child(self) -> None:
        """In the child nobody holds anything; only the marks stay."""
        self._mutex = threading.Lock()
        self._frozen = 0
        marks = {name: line.mark for name, line in self.store.lines.items()}
        marks = {**self.store.marks, **marks}
        ended = {name: line.last for name, line in self.store.lines.items() if line.last is not None}
        ended = {**self.store.ended, **ended}
        records = self.store.records
        self.store = MemoryStore()
        self.store.marks, self.store.ended, self.store.records = marks, ended, records

    def wire(self) -> Wire[QueueRequest, QueueReply]:
        from .wires import MemoryWire

        return MemoryWire(self)

    async def async_wire(self) -> AsyncWire[QueueRequest, QueueReply]:
        from .aio_wire import AsyncMemoryWire

        return AsyncMemoryWire(self)


_engines: dict[tuple[str, str], MemoryEngine] = {}


def open_engine(url: str, namespace: str, request_timeout: float) -> MemoryEngine:
    if "?" in url:
        raise Misconfigured(f"{url!r}: memory:// takes no options")
    key = (url, namespace)
    if (engine := _engines.get(key)) is None:  # two threads at once get the same one
        engine = _engines.setdefault(key, MemoryEngine(url, request_timeout))
    return engine
