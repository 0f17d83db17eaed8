"""How requests and replies are written (jute), the numbers of operations, and the codes of errors.

It is written anew here, and shares nothing with the client: a mistake of one would be hidden by the same mistake of the
other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

_INT = struct.Struct("!i")
_LONG = struct.Struct("!q")
_HEADER = struct.Struct("!iqi")
MAX_FRAME_BYTES = 0xFFFFF
"""jute.maxbuffer; a connection that announces more is closed."""


class Op:
    """Numbers of operations."""

    CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = 1, 2, 3, 4, 5, 6, 7, 8, 9
    PING, GET_CHILDREN2, CHECK, MULTI, CREATE2 = 11, 12, 13, 14, 15
    REMOVE_WATCHES, CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL = 18, 19, 20, 21
    AUTH, SET_WATCHES, CREATE_SESSION, CLOSE_SESSION, ERROR = 100, 101, -10, -11, -1


CREATES = frozenset({Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL})
WRITES = CREATES | {
    Op.DELETE, Op.DELETE_CONTAINER, Op.SET_DATA, Op.SET_ACL, Op.CHECK, Op.MULTI, Op.CREATE_SESSION, Op.CLOSE_SESSION,
}  # fmt: skip
READS = frozenset(
    {Op.EXISTS, Op.GET_DATA, Op.GET_ACL, Op.GET_CHILDREN, Op.GET_CHILDREN2, Op.PING, Op.SET_WATCHES, Op.REMOVE_WATCHES}
)


class Code:
    """Codes of errors."""

    OK, INCONSISTENCY, MARSHALLING, UNIMPLEMENTED, BAD_ARGUMENTS, UNKNOWN_SESSION = 0, -2, -5, -6, -8, -12
    NO_NODE, NO_AUTH, BAD_VERSION, NO_CHILDREN_FOR_EPHEMERALS = -101, -102, -103, -108
    NODE_EXISTS, NOT_EMPTY, SESSION_EXPIRED, INVALID_ACL, AUTH_FAILED = -110, -111, -112, -114, -115
    SESSION_MOVED, NO_WATCHER = -118, -121


class Refused(Exception):
    """The server's no, with its code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Malformed(ValueError):
    """A record that cannot be read."""


class Acl(NamedTuple):
    """One entry of an access control list."""

    rights: int
    scheme: str
    who: str


class RecordReader:
    """Reads one record from its beginning."""

    __slots__ = ("_at", "_record")

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._at = 0

    def _take(self, size: int) -> int:
        at = self._at
        if at + size > len(self._record):
            raise Malformed(f"{size} bytes expected, {len(self._record) - at} there")
        self._at = at + size
        return at

    def integer(self) -> int:
        value: int = _INT.unpack_from(self._record, self._take(4))[0]
        return value

    def long(self) -> int:
        value: int = _LONG.unpack_from(self._record, self._take(8))[0]
        return value

    def flag(self) -> bool:
        return self._record[self._take(1)] != 0

    def buffer(self) -> bytes | None:
        size = self.integer()
        if size == -1:
            return None
        if size < 0 or size > MAX_FRAME_BYTES + 1024:
            raise Malformed(f"a buffer of {size} bytes")
        at = self._take(size)
        return self._record[at : at + size]

    def text(self) -> str:
        value = self.buffer()
        if value is None:
            raise Malformed("no text")
        return value.decode(errors="replace")

    def texts(self) -> list[str]:
        return [self.text() for _ in range(self.integer())]

    def acls(self) -> tuple[Acl, ...]:
        return tuple(Acl(self.integer(), self.text(), self.text()) for _ in range(self.integer()))

    @property
    def left(self) -> int:
        return len(self._record) - self._at

    def back_to(self, left: int) -> None:
        """Read again from where so much was left."""
        self._at = len(self._record) - left


def integer(value: int) -> bytes:
    return _INT.pack(value)


def long(value: int) -> bytes:
    return _LONG.pack(value)


def flag(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def buffer(value: bytes | None) -> bytes:
    return _INT.pack(-1) if value is None else _INT.pack(len(value)) + value


def text(value: str) -> bytes:
    return buffer(value.encode())


def texts(values: Iterable[str]) -> bytes:
    encoded = [text(value) for value in values]
    return _INT.pack(len(encoded)) + b"".join(encoded)


def acls(values: Iterable[Acl]) -> bytes:
    encoded = [integer(acl.rights) + text(acl.scheme) + text(acl.who) for acl in values]
    return _INT.pack(len(encoded)) + b"".join(encoded)


def frame(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body


def reply(xid: int, zxid: int, code: int, body: bytes = b"") -> bytes:
    """A whole frame."""
    return _INT.pack(len(body) + 16) + _HEADER.pack(xid, zxid, code) + body
