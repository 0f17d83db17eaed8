"""What a simulated server is made of.

1. A server is pure: it has no socket, no thread and no clock of its own. Bytes come in through `Session.receive`, in
   pieces of any size; bytes go out through `Output.send`. Time, timers and chance come from its `Host`.
2. All sessions of one server share its state; what a session sends is carried out in the order of arrival, each
   request at one moment.
3. The machine under it may fail: `Server.stop` ends all sessions without a word, and `Server.start(Memory.…)` brings
   it back with all that it knew, with nothing, or with what it knew at the last `Server.back_up`.
4. A model is worth what its likeness is. `tests/likeness` plays the same random requests to it and to the real server,
   and compares the replies.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from random import Random
from typing import Protocol


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None: ...


class Host(Protocol):
    """The machine that a server runs on."""

    chance: Random

    def now(self) -> float:
        """Monotonic, in seconds."""
        ...

    def calendar(self) -> float:
        """Seconds since 1970, by this machine's clock, which may be wrong and may jump."""
        ...

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Have `action` called in so many seconds, unless the server has been stopped by then."""
        ...


class Output(Protocol):
    """The way back to a client."""

    def send(self, data: bytes) -> None: ...

    def close(self) -> None:
        """The server ends the connection."""
        ...


class Session(Protocol):
    """One client's connection, as the server sees it."""

    def receive(self, data: bytes) -> None: ...

    def closed(self) -> None:
        """The client has ended the connection, or it was lost."""
        ...


class Memory(enum.Enum):
    """What a server remembers when it starts again."""

    ALL = "all"
    NOTHING = "nothing"
    BACKUP = "backup"


class Server(Protocol):
    """One node."""

    def accept(self, output: Output) -> Session: ...

    def stop(self) -> None:
        """The machine has failed: all sessions end without a word, timers too."""
        ...

    def start(self, memory: Memory) -> None: ...

    def back_up(self) -> None:
        """Remember the present state for `Memory.BACKUP`."""
        ...
