"""Connections of simulated processes to simulated servers: streams of bytes, with a fate of their own.

1. Each direction keeps its order, as TCP does; how the bytes are cut into pieces is chance.
2. `Net.fate` decides what becomes of an attempt to connect and of each piece; see `ConnectionFate` for what may be.
3. With keep-alives an idle connection whose other side is gone ends, in the time that the options of TCP say.
4. What reaches a process that is stopped waits until it runs; what reaches one that has crashed is gone, and its
   servers see the connection end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast._core.flow import Endpoint

from .servers.model import Server, Session
from .violation import Violation

if TYPE_CHECKING:
    from .driver import Task
    from .process import Process

TICK_S = 50e-6
NEVER_S = float("inf")


class ConnectionFate(Protocol):
    """What becomes of one connection. Every answer is in seconds from now; `NEVER_S` is for ever."""

    def accepted(self) -> float:
        """Until the client knows that it is connected; `NEVER_S`: the server's machine does not answer."""
        ...

    def refused(self) -> bool:
        """The machine is there, and nobody listens."""
        ...

    def pieces(self, data: bytes) -> list[bytes]:
        """How the bytes are cut."""
        ...

    def to_server(self, data: bytes) -> float:
        """Until these bytes reach the server; `NEVER_S`: they are lost, and all behind them."""
        ...

    def to_client(self, data: bytes) -> float: ...

    def reset(self) -> bool:
        """Whether the connection breaks right here: both sides are told."""
        ...


class Net(Protocol):
    """What a process needs of the network."""

    def server(self, endpoint: Endpoint) -> Server | None:
        """Who listens there; None if the machine is down."""
        ...

    def fate(self, process: Process, endpoint: Endpoint) -> ConnectionFate: ...


LATE_PICK_UP_RATIO = 0.1
"""How often bytes lie there for a moment, though somebody waits for them."""


class SimConnection:
    """Both ends of one connection: a `Connection` to its client, and an `Output` to its server."""

    def __init__(self, process: Process, fate: ConnectionFate) -> None:
        self._process = process
        self._fate = fate
        self._session: Session | None = None
        self._unread: list[bytes] = []
        self._ended: OSError | None = None
        self._eof = False
        self._waiter: tuple[Task, int] | None = None
        self._watchers: list[Callable[[], None]] = []
        self._reached_server = self._reached_client = 0.0
        self._server_closed = False
        self._to_server_lost = self._to_client_lost = False
        self.closed = False

    # The client's side

    def send(self, data: bytes) -> None:
        if self._ended is not None:
            raise self._ended
        if self._eof:
            raise BrokenPipeError("the server has ended the connection")
        world = self._process.world
        for piece in self._fate.pieces(data):
            if self._fate.reset():
                self.break_off()
                return
            delay = self._fate.to_server(piece)
            if delay == NEVER_S:
                self._to_server_lost = True
            if self._to_server_lost:
                continue
            self._reached_server = max(self._reached_server, world.timeline.now + delay)
            world.timeline.at(self._reached_server, self._deliver_to_server, piece)

    def write(self, data: bytes) -> bool:
        try:
            self.send(data)
        except OSError:
            return False
        return True

    def receive(self, task: Task, deadline: float) -> bytes | None:
        """The bytes that are there; None: the task is woken with some, or at the deadline."""
        if (data := self.read()) is not None:
            return data
        if self._waiter is not None and self._waiter[0].epoch == self._waiter[1] and not self._waiter[0].done:
            raise Violation("no flow breaks", f"{self._process.name}: two flows receive on one connection")
        self._waiter = (task, task.epoch)
        task.wake_at(deadline, TimeoutError("no answer in time"))
        return None

    def read(self) -> bytes | None:
        """The bytes that are there; None for nothing yet, `b""` for the end."""
        if self._unread:
            data, self._unread = b"".join(self._unread), []
            return data
        if self._ended is not None:
            raise self._ended
        return b"" if self._eof else None

    def readable(self) -> bool:
        return bool(self._unread) or self._ended is not None or self._eof

    def watch(self, action: Callable[[], None]) -> None:
        self._watchers.append(action)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self._ended is None:
                self._ended = ConnectionAbortedError("this side has closed the connection")
            self._process.after(TICK_S, self._wake)  # whoever waits on it runs in a step of its own
            self._tell_server()

    def abandon(self) -> None:
        self.closed = True

    def crashed(self) -> None:
        """Its process is gone; the operating system closes what it had open."""
        self._tell_server()

    # The server's side

    def begin(self, server: Server) -> None:
        self._session = server.accept(_Output(self))

    def from_server(self, data: bytes) -> None:
        if self._server_closed or self.closed:
            return
        process, world = self._process, self._process.world
        for piece in self._fate.pieces(data):
            if self._fate.reset():
                self.break_off()
                return
            delay = self._fate.to_client(piece)
            if delay == NEVER_S:
                self._to_client_lost = True
            if self._to_client_lost:
                continue
            self._reached_client = max(self._reached_client, world.timeline.now + delay)
            process.receive(self._reached_client, self._deliver_to_client, piece)

    def server_closes(self) -> None:
        if self._server_closed:
            return
        self._server_closed = True
        if not self._to_client_lost:
            self._reached_client = max(self._reached_client, self._process.world.timeline.now + TICK_S)
            self._process.receive(self._reached_client, self._deliver_end)

    def break_off(self) -> None:
        """A reset: both sides are told at once, and what is under way is gone."""
        self._to_server_lost = self._to_client_lost = True
        process = self._process
        process.receive(process.world.timeline.now + TICK_S, self._end, ConnectionResetError("reset by the network"))
        self._tell_server()

    def keep_alive(self, idle_s: float, patience_s: float) -> None:
        """Ask the other side every `idle_s` whether it is there; an answer may take `patience_s`."""
        self._process.world.timeline.at(self._process.world.timeline.now + idle_s, self._probe, idle_s, patience_s)

    def _probe(self, idle_s: float, patience_s: float) -> None:
        if self.closed or self._ended is not None or self._server_closed:
            return
        process, now = self._process, self._process.world.timeline.now
        if self._to_server_lost or self._to_client_lost:
            process.receive(now + patience_s, self._end, TimeoutError("the other side does not answer"))
            return
        self._deliver_to_server(b"")  # a machine that knows nothing of this connection ends it
        self.keep_alive(idle_s, patience_s)

    def _deliver_to_server(self, data: bytes) -> None:
        if self._session is not None and not self._server_closed:
            self._session.receive(data)

    def _deliver_to_client(self, data: bytes) -> None:
        if self.closed or self._ended is not None:
            return
        self._unread.append(data)
        if self._waiter is not None and self._process.world.chance.random() < LATE_PICK_UP_RATIO:
            self._process.after(TICK_S, self._pick_up)  # whoever receives is not the first to run: others see it lie
        else:
            self._wake()

    def _pick_up(self) -> None:
        if self.readable():  # nobody has meanwhile
            self._wake()

    def _deliver_end(self) -> None:
        self._eof = True
        self._wake()

    def _end(self, why: OSError) -> None:
        if self._ended is None:
            self._ended = why
        self._wake()

    def _tell_server(self) -> None:
        if self._session is not None and not self._server_closed:
            self._server_closed = True
            session = self._session
            timeline = self._process.world.timeline
            timeline.at(max(self._reached_server, timeline.now + TICK_S), session.closed)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and waiter[0].epoch == waiter[1] and not waiter[0].done:
            task, epoch = waiter
            if self._unread:
                data, self._unread = b"".join(self._unread), []
                task.wake(epoch, data)
            elif self._ended is not None:
                task.wake(epoch, None, self._ended)
            else:
                task.wake(epoch, b"")
        watchers, self._watchers = self._watchers, []
        for action in watchers:
            action()


class _Output:
    """The way back, as a server has it."""

    def __init__(self, connection: SimConnection) -> None:
        self._connection = connection

    def send(self, data: bytes) -> None:
        self._connection.from_server(data)

    def close(self) -> None:
        self._connection.server_closes()


def open_connection(task: Task, net: Net, endpoint: Endpoint, deadline: float) -> None:
    """Begin to connect: the task is woken with the connection, or with why there is none."""
    epoch = task.epoch
    task.wake_at(deadline, TimeoutError(f"no connection to {endpoint} in time"))

    def welcome(connection: SimConnection) -> None:
        if task.epoch != epoch or task.done:
            connection.close()  # it took too long
        else:
            task.wake(epoch, connection)

    connect(task.process, net, endpoint, welcome, lambda error: task.wake(epoch, None, error))


def connect(
    process: Process,
    net: Net,
    endpoint: Endpoint,
    welcome: Callable[[SimConnection], None],
    refuse: Callable[[OSError], None],
) -> None:
    """Begin to connect: one of the two is called, or none."""
    fate = net.fate(process, endpoint)
    connection = SimConnection(process, fate)
    delay = fate.accepted()
    if delay == NEVER_S:
        return

    def arrive() -> None:
        server = net.server(endpoint)
        told_at = process.world.timeline.now + TICK_S
        if server is None or fate.refused():
            process.receive(told_at, refuse, ConnectionRefusedError(f"nobody listens at {endpoint}"))
            return
        connection.begin(server)
        process.connections.append(connection)
        options = dict(endpoint.keepalive_options)
        if idle_s := options.get(socket.TCP_KEEPIDLE):
            silent_s = options.get(socket.TCP_KEEPINTVL, 75) * options.get(socket.TCP_KEEPCNT, 9)
            connection.keep_alive(idle_s, silent_s)
        process.receive(told_at, welcome, connection)

    process.world.timeline.at(process.world.timeline.now + delay, arrive)
