"""Flows and their ops: the algorithm without I/O.

A flow is a generator that yields ops and returns a result. A driver runs it: it carries out each op and sends the
answer back in, or throws the error. Rules that every driver keeps:

1. A `Call` in flight is finished (within its timeout) before a cancellation reaches the flow: drain, then roll
   back. So when a flow sees an exception at a `Call`, no reply of its own is still under way on that wire.
2. `Shield(flow)` runs to its end whatever happens outside; the cancellation comes after it.
3. `Spawn(flow)` goes on in the background; it must end by itself, and nobody reads its result.
4. A flow never catches `GeneratorExit`, and it never touches time or chance but through `NOW` and `RANDOM`.

An engine's client is flows, too, over ops on connections: what it decides between a request and its bytes is written
once, and the drivers only carry it out. More rules:

5. A connection op has a deadline, on the clock of `NOW`, which its caller gave. It raises `TimeoutError` at the
   deadline, and another `OSError` when the connection is broken; nothing it was given is kept back until later.
6. Between two ops of a client's flow no other flow of that client runs, in any driver: its state needs no locks. In
   threads the driver holds the client's monitor while a flow runs, and lets go of it during an op that may block.
7. Closing a connection (`Connection.close`) and setting an event never block: they are plain calls, not ops.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
Request = TypeVar("Request")
Request_co = TypeVar("Request_co", covariant=True)


class Call(Generic[Request_co]):
    """One request to the engine. Answers with the reply, or raises `BackendUnavailable` / `OutcomeUnknown`."""

    __slots__ = ("request", "timeout")

    def __init__(self, request: Request_co, timeout: float) -> None:
        self.request = request
        self.timeout = timeout


class Wait:
    """Wait for a push to this owner. Answers with its message, or None once `timeout` has passed."""

    __slots__ = ("owner", "timeout")

    def __init__(self, owner: str, timeout: float) -> None:
        self.owner = owner
        self.timeout = timeout


class Sleep:
    """A pause."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Now:
    """A look at the driver's clock: monotonic, in seconds, and it does not stop while the machine sleeps."""

    __slots__ = ()


class Random:
    """A number from 0 (included) to 1 (excluded)."""

    __slots__ = ()


class WakeEvent(Protocol):
    """What wakes a waiting flow; set from any thread or task of its driver.

    One that has the attribute `cheap`, and it is true, wakes a flow in the next turn of a loop, without another thread.
    """

    def set(self) -> None:
        """Wake whoever waits for it."""
        ...


class WaitEvent:
    """Sleep until the event is set, or `timeout` has passed (None: until it is set)."""

    __slots__ = ("event", "timeout")

    def __init__(self, event: WakeEvent, timeout: float | None) -> None:
        self.event = event
        self.timeout = timeout


class WaitDial(WaitEvent):
    """The same for a connection that another flow makes or uses: nothing is under way, so it may be cancelled."""

    __slots__ = ()


class Shield(Generic[Request_co]):
    """Run a flow to its end, out of reach of any cancellation. Answers with its result."""

    __slots__ = ("flow",)

    def __init__(self, flow: RequestFlow[Request_co, object]) -> None:
        self.flow = flow


class Spawn(Generic[Request_co]):
    """Run a flow in the background. Answers False if it could not be started."""

    __slots__ = ("flow",)

    def __init__(self, flow: RequestFlow[Request_co, object]) -> None:
        self.flow = flow


# Connections


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens: a host and a port, or the path of a Unix socket."""

    host: str
    port: int
    path: str = ""
    tls: object | None = None
    """An `ssl.SSLContext`: what is said is encrypted."""
    server_name: str = ""
    """The name to be found in the server's certificate, where it is not the host."""
    keepalive_options: tuple[tuple[int, int], ...] = ()
    """Of TCP (`TCP_KEEPIDLE` …), each with its value."""
    source_host: str = ""
    """The address of this machine to connect from; any, where it is empty."""

    def __str__(self) -> str:
        return self.path or (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}")


class Connection(Protocol):
    """An open connection: bytes in both directions.

    One from which an interruption (Ctrl-C) may take bytes that no flow is given has the attribute `received`: cleared
    before a `Receive`, it is empty for as long as that has taken nothing.
    """

    @property
    def closed(self) -> bool:
        """Whether this side has closed it."""
        ...

    def readable(self) -> bool:
        """Whether `Receive` would answer at once: bytes have come, or the end of the connection has."""
        ...

    def write(self, data: bytes) -> bool:
        """Send without waiting, in the order of these calls; for connections that several flows send on.

        False: some of it did not fit, or another flow is sending; `Send(connection, b"", deadline)` sends the rest.
        """
        ...

    def close(self) -> None:
        """End it. Whoever waits on it is told by a `ConnectionError`."""
        ...

    def abandon(self) -> None:
        """In a forked child: let go of our copy, and say nothing on it: the connection is the parent's."""
        ...


class OpenConnection(Connection, Protocol):
    """What `Open` makes: bytes can be taken from it without waiting, too."""

    def read(self) -> bytes | None:
        """What has come, as `Receive` would answer at once; None if nothing has. Raises OSError as that does."""
        ...


@dataclass(frozen=True, slots=True)
class File:
    """A file descriptor of somebody else's connection (libpq's): to be waited for only, and by one flow at a time."""

    number: int
    writable: bool = False
    """Until it can be written to, and not until it can be read from."""


class FileWatch(Protocol):
    """A file that is waited for again and again, until it can be read from. Made by `WatchFile`."""

    def close(self) -> None:
        """Before the file is closed. Whoever waits for it is woken; in threads only by what comes on the file."""
        ...


class WatchFile:
    """Answers with a `FileWatch`: a cheaper `File`. `owner` is kept alive for as long as the file is watched."""

    __slots__ = ("number", "owner")

    def __init__(self, number: int, owner: object) -> None:
        self.number = number
        self.owner = owner


class Open:
    """Connect: look up the name, dial, shake hands (TLS). Answers with a `Connection`."""

    __slots__ = ("deadline", "endpoint")

    def __init__(self, endpoint: Endpoint, deadline: float) -> None:
        self.endpoint = endpoint
        self.deadline = deadline


class Send:
    """Send all of these bytes."""

    __slots__ = ("connection", "data", "deadline")

    def __init__(self, connection: Connection, data: bytes, deadline: float) -> None:
        self.connection = connection
        self.data = data
        self.deadline = deadline


class Receive:
    """Answers with some bytes, as soon as there are any; b"" once the server has ended the connection."""

    __slots__ = ("connection", "deadline")

    def __init__(self, connection: Connection, deadline: float) -> None:
        self.connection = connection
        self.deadline = deadline


class Exchange:
    """`Send`, then `Receive`, as one op: what most requests are made of."""

    __slots__ = ("connection", "data", "deadline")

    def __init__(self, connection: Connection, data: bytes, deadline: float) -> None:
        self.connection = connection
        self.data = data
        self.deadline = deadline


class Blocking:
    """Call a function that may block (a user's code, certificates that are read) on a thread of its own.

    Answers with what it returns. It is left behind at the deadline, and goes on: what it does must not matter then.
    """

    __slots__ = ("deadline", "function")

    def __init__(self, function: Callable[[], object], deadline: float) -> None:
        self.function = function
        self.deadline = deadline


class StartTls:
    """Encrypt what is said from now on: shake hands on a connection that began in the clear, and asked for this."""

    __slots__ = ("connection", "context", "deadline", "server_name")

    def __init__(self, connection: Connection, context: object, server_name: str, deadline: float) -> None:
        self.connection = connection
        self.context = context
        """An `ssl.SSLContext`."""
        self.server_name = server_name
        self.deadline = deadline


class WaitAny:
    """Wait until something has come on one of these, or an event is set. Answers with those that are ready.

    Nothing is ready at the deadline: then the answer is false (empty, or None). An event that is ready has been reset.
    """

    __slots__ = ("deadline", "sources")

    def __init__(self, sources: Sequence[Source], deadline: float) -> None:
        self.sources = sources
        self.deadline = deadline


class NewEvent:
    """Answers with a new event of this driver."""

    __slots__ = ()


class PendingReply(Protocol):
    """Where somebody waits for the reply to a request that another flow carries out."""

    def set_result(self, value: object, /) -> None:
        """Wake whoever waits, soon. May be called from anywhere."""
        ...

    def answer(self, value: object, /) -> None:
        """The same at once: whoever waits may go on before this returns. For drivers (see `Tell`)."""
        ...


class Tell:
    """Give replies to those who wait for them. They may go on, and ask again, before this is done."""

    __slots__ = ("replies",)

    def __init__(self, replies: Sequence[tuple[PendingReply, object]]) -> None:
        self.replies = replies


Source: TypeAlias = Connection | WakeEvent | File | FileWatch

PlainOp: TypeAlias = (
    Wait
    | Sleep
    | Now
    | Random
    | WaitEvent
    | Open
    | Send
    | Receive
    | Exchange
    | Blocking
    | StartTls
    | WaitAny
    | WatchFile
    | NewEvent
    | Tell
)
RequestOp: TypeAlias = Call[Request] | Shield[Request] | Spawn[Request] | PlainOp
RequestFlow: TypeAlias = Generator[RequestOp[Request], Any, T]
"""A flow that sends requests of this type, and no others: the flows of an engine's backend.

`Any` is what an op answers with. It differs from op to op, and a generator has one type for all that it is sent.
"""

Op: TypeAlias = RequestOp[object]
Flow: TypeAlias = RequestFlow[object, T]
"""A flow of which nobody needs to know what it sends: every `RequestFlow` is one. So is one that sends no requests."""

NOW: Final = Now()
RANDOM: Final = Random()
NEW_EVENT: Final = NewEvent()
