"""The messages between wrapper and holder: lines of JSON on a socket pair. End of file means that the other died.

The deadline is not a message but a number in shared memory. So it needs no traffic, a paused reader cannot fall
behind, and a paused writer leaves the last valid deadline.
"""

from __future__ import annotations

import json
import mmap
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Message:
    """To the wrapper: granted, lost, released, failed. To the holder: started, stopping, done."""

    kind: str
    token: int = 0
    sequencer: str = ""
    pid: int = 0
    reason: str = ""
    told: bool = True
    """released: whether the engine has confirmed it."""
    text: str = ""
    code: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    """granted: the context of the hold's span, for the command (`--trace`)."""


class Channel:
    """One end of the socket pair. It never raises because the other end is closed: `closed` says so."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._rest = b""
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        try:
            self._socket.sendall(json.dumps(asdict(message)).encode() + b"\n")
        except OSError:
            self.closed = True

    def receive(self) -> Iterator[Message]:
        """The messages that have arrived; blocks until there is one, or the other end is closed."""
        try:
            data = self._socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.closed = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield Message(**json.loads(line))

    def close(self) -> None:
        self._socket.close()


def channel_pair() -> tuple[Channel, Channel]:
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)


class SharedDeadline:
    """Until when the command may run, on `holdfast.clock`; shared by both processes. 0 before the grant."""

    def __init__(self) -> None:
        self._seconds = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")

    def get(self) -> float:
        return self._seconds[0]

    def set(self, moment: float) -> None:
        self._seconds[0] = moment  # eight aligned bytes: written and read whole
