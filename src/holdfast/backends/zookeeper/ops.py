"""The operations that a lock needs, each as what goes out and how its answer is read.

1. An operation is a value: it can be sent again, and is shared by the blocking and the asyncio wire.
2. An answer with an error code is a `Failure`, returned like any other answer: a missing node is news, not an accident.
3. `Watches` are set on claims' nodes as if for their children. Such a node has none, so a watch fires once, when the
   node is deleted, and not when its data is written: a holder may write to its node without waking anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from . import jute
from .jute import JuteReader, Stat

EPHEMERAL, SEQUENTIAL = 1, 2
_CONTAINER_CODE = 4
_CREATED_BARELY_CODE = 1
ANY_VERSION = -1
PORTION_BYTES = 128 << 10

CONNECTION_LOST, MARSHALLING, UNIMPLEMENTED = -4, -5, -6
NO_NODE, NO_AUTH, BAD_VERSION, EXISTS, NOT_EMPTY = -101, -102, -103, -110, -111
SESSION_EXPIRED, AUTH_FAILED, SESSION_MOVED = -112, -115, -118


@dataclass(frozen=True, slots=True)
class Failure:
    """The server's no, with its code."""

    code: int

    def __bool__(self) -> bool:
        return False


Answer: TypeAlias = object
"""What an operation's `read` makes of a reply, or a `Failure`."""


class Op(Protocol):
    """`kind` is the operation's number, `body` what follows it, `read` what makes its answer a value."""

    @property
    def kind(self) -> int: ...

    def body(self) -> bytes: ...

    def read(self, reader: JuteReader) -> Answer: ...


@dataclass(slots=True)  # made for each acquisition, as are List and Delete; freezing would cost more than making it
class Created:
    path: str
    stat: Stat


@dataclass(frozen=True, slots=True)
class Create:
    """A node; answers `Created`. `acl` comes ready to send."""

    path: str
    data: bytes
    acl: bytes
    flags: int = 0
    kind = 15

    def body(self) -> bytes:
        return jute.text(self.path) + jute.data(self.data) + self.acl + jute.integer(self.flags)

    def read(self, reader: JuteReader) -> Created:
        return Created(reader.text(), reader.stat())


@dataclass(frozen=True, slots=True)
class CreateContainer:
    """A node that the server removes when its last child is gone."""

    path: str
    acl: bytes
    kind = 19

    def body(self) -> bytes:
        return jute.text(self.path) + jute.data(b"") + self.acl + jute.integer(_CONTAINER_CODE)

    def read(self, reader: JuteReader) -> Created:
        return Created(reader.text(), reader.stat())


@dataclass(slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION
    kind = 2

    def body(self) -> bytes:
        return jute.text(self.path) + jute.integer(self.version)

    def read(self, reader: JuteReader) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Exists:
    path: str
    kind = 3

    def body(self) -> bytes:
        return jute.text(self.path) + jute.flag(False)

    def read(self, reader: JuteReader) -> Stat:
        return reader.stat()


@dataclass(frozen=True, slots=True)
class Read:
    """A node's data and stat; with `watch`, news of its next change or its end."""

    path: str
    watch: bool = False
    kind = 4

    def body(self) -> bytes:
        return jute.text(self.path) + jute.flag(self.watch)

    def read(self, reader: JuteReader) -> tuple[bytes, Stat]:
        return reader.data(), reader.stat()


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    data: bytes
    version: int = ANY_VERSION
    kind = 5

    def body(self) -> bytes:
        return jute.text(self.path) + jute.data(self.data) + jute.integer(self.version)

    def read(self, reader: JuteReader) -> Stat:
        return reader.stat()


@dataclass(slots=True)
class List:
    """The names of a node's children, in no order, and its own stat."""

    path: str
    kind = 12

    def body(self) -> bytes:
        return jute.text(self.path) + jute.flag(False)

    def read(self, reader: JuteReader) -> tuple[list[str], Stat]:
        return reader.texts(), reader.stat()


class Prepared:
    """A listing that is sent often: written once."""

    __slots__ = ("_body", "read")
    kind = 12

    def __init__(self, op: List) -> None:
        self._body = op.body()
        self.read = op.read

    def body(self) -> bytes:
        return self._body


@dataclass(frozen=True, slots=True)
class Watches:
    """Be told when one of these claims' nodes is deleted (rule 3); of one that is gone already, at once.

    And when a node is made that is not there yet (`made`). It is what a client sends after it has connected again
    (setWatches), where the server compares with what the client has seen. Here nothing is compared: `_HAS_SEEN_ALL`.
    """

    paths: Sequence[str]
    made: Sequence[str] = ()
    kind = 101

    def body(self) -> bytes:
        return _HAS_SEEN_ALL + _NONE + jute.texts(self.made) + jute.texts(self.paths)

    def read(self, reader: JuteReader) -> bool:
        return True


def portions(paths: Iterable[str]) -> Iterator[list[str]]:
    """Paths in so many lists that each fits well into one request: a server takes a megabyte (jute.maxbuffer)."""
    some: list[str] = []
    size = 0
    for path in paths:
        size += 4 + len(path.encode())
        if some and size > PORTION_BYTES:
            yield some
            some, size = [], 4 + len(path.encode())
        some.append(path)
    if some:
        yield some


@dataclass(frozen=True, slots=True)
class Unwatch:
    """Do not wait any longer for this node to be made."""

    path: str
    kind = 18

    def body(self) -> bytes:
        return jute.text(self.path) + jute.integer(2)

    def read(self, reader: JuteReader) -> bool:
        return True


_HAS_SEEN_ALL = jute.long((1 << 63) - 1)
_NONE = jute.texts(())


@dataclass(frozen=True, slots=True)
class Sync:
    """Through the leader and back: proves that this server is in touch with it."""

    path: str
    kind = 9

    def body(self) -> bytes:
        return jute.text(self.path)

    def read(self, reader: JuteReader) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Check:
    """A condition in a `Multi`: the node is there, in this version."""

    path: str
    version: int = ANY_VERSION
    kind = 13

    def body(self) -> bytes:
        return jute.text(self.path) + jute.integer(self.version)

    def read(self, reader: JuteReader) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Multi:
    """All or none. Answers with the answers, or with the `Failure` that kept all from being done.

    Servers tell the path of a node that was created in one, and not its stat.
    """

    ops: Sequence[Op]
    kind = 14

    def body(self) -> bytes:
        parts = [jute.integer(op.kind) + b"\x00" + jute.integer(-1) + op.body() for op in self.ops]
        return b"".join(parts) + jute.integer(-1) + b"\x01" + jute.integer(-1)

    def read(self, reader: JuteReader) -> list[Answer] | Failure:
        answers: list[Answer] = []
        failure: Failure | None = None
        while True:
            kind, done, code = reader.integer(), reader.flag(), reader.integer()
            if done:
                return answers if failure is None else failure
            if kind == -1:
                code = reader.integer()
                if code and failure is None:
                    failure = Failure(code)
            elif kind == _CREATED_BARELY_CODE:
                answers.append(reader.text())
            else:
                answers.append(self.ops[len(answers)].read(reader))


@dataclass(frozen=True, slots=True)
class CloseSession:
    kind = -11

    def body(self) -> bytes:
        return b""

    def read(self, reader: JuteReader) -> bool:
        return True


def acl(scheme: str = "world", who: str = "anyone") -> bytes:
    """All rights for one kind of people, ready to send."""
    return jute.integer(1) + jute.integer(31) + jute.text(scheme) + jute.text(who)
