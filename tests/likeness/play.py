"""What every likeness test needs: a machine for a model, bytes in odd pieces, and a model behind a real socket.

1. A play is made from a seed: the same seed asks the same. `rounds` says how many there are: few in the test suite,
   more with LIKENESS_ROUNDS in the environment.
2. `RealTime` is the machine under a model that is played beside a real server: both see the same calendar.
3. `serving` puts a model behind a loopback port, for clients that know nothing of simulation.
"""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from holdfast_sim.servers.model import Server, Session

LEAST_STEP_S = 2e-6
"""Two looks at the calendar are never the same moment: a real server needs longer for a request."""
LONGEST_PAUSE_S = 0.05


def rounds(few: int) -> int:
    return int(os.environ.get("LIKENESS_ROUNDS", few))


def in_pieces(data: bytes, chance: Random) -> Iterator[bytes]:
    """The same bytes, whole or cut at odd places."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 3))))
    for begin, end in itertools.pairwise([0, *cuts, len(data)]):
        if begin < end:
            yield data[begin:end]


@dataclass(eq=False)
class DueTimer:
    action: Callable[[], None] | None

    def cancel(self) -> None:
        self.action = None


@dataclass
class RealTime:
    """The machine under a model: the real clock, and timers that `run_due` lets come true."""

    chance: Random
    _last: float = 0.0
    _timers: list[tuple[float, int, DueTimer]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def now(self) -> float:
        return time.monotonic()

    def calendar(self) -> float:
        self._last = max(self._last + LEAST_STEP_S, time.time())
        return self._last

    def after(self, seconds: float, action: Callable[[], None]) -> DueTimer:
        timer = DueTimer(action)
        heapq.heappush(self._timers, (self.now() + seconds, next(self._numbers), timer))
        return timer

    def run_soon(self) -> None:
        """Let come true what is due in a moment, for a client that waits for it."""
        while self._timers and self._timers[0][0] - self.now() < LONGEST_PAUSE_S:
            time.sleep(max(0.0, self._timers[0][0] - self.now()))
            self.run_due()

    def run_due(self) -> None:
        while self._timers and self._timers[0][0] <= self.now():
            timer = heapq.heappop(self._timers)[2]
            if timer.action is not None:
                timer.action()


@dataclass(eq=False)
class Recorder:
    """What a model has sent to one client."""

    data: bytearray = field(default_factory=bytearray)
    ended: bool = False

    def send(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        self.ended = True


class _SocketOutput:
    def __init__(self, sock: socket.socket, end: Callable[[], None]) -> None:
        self._sock = sock
        self._end = end

    def send(self, data: bytes) -> None:
        try:
            self._sock.setblocking(True)
            self._sock.sendall(data)
            self._sock.setblocking(False)
        except OSError:
            pass  # the client has gone; the loop will hear of it

    def close(self) -> None:
        self._end()


class _Loop:
    """One thread that reads from all clients and lets timers come true: a model is never entered twice at once."""

    def __init__(self, server: Server, host: RealTime) -> None:
        self._server = server
        self._host = host
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self.over = False

    def run(self) -> None:
        while not self.over:
            for key, _ in self._selector.select(LONGEST_PAUSE_S):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.fileobj, key.data)
            self._host.run_due()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = self._server.accept(_SocketOutput(sock, lambda: self._close(sock)))
        self._selector.register(sock, selectors.EVENT_READ, session)

    def _read(self, sock: object, session: Session) -> None:
        assert isinstance(sock, socket.socket)
        try:
            data = sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            session.receive(data)
        else:
            session.closed()
            self._close(sock)

    def _close(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0:
            self._selector.unregister(sock)
            sock.close()


@contextmanager
def serving(server: Server, host: RealTime) -> Iterator[int]:
    """The loopback port where the model answers, for as long as the block lasts."""
    loop = _Loop(server, host)
    thread = threading.Thread(target=loop.run, name="served-model", daemon=True)
    thread.start()
    try:
        yield loop.port
    finally:
        loop.over = True
        thread.join(10)
