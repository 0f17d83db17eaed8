"""PostgreSQL's protocol, version 3: messages as both sides write and read them.

A message: its kind (one byte), its length (4 bytes, itself included), its body. The first one of a client has no kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..relational.statement_runner import ServerError

PROTOCOL, CANCEL, SSL, GSS = 196608, 80877102, 80877103, 80877104
TEXT_OID = 25
Row: TypeAlias = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class MessageRows:
    """A result with rows."""

    columns: Sequence[bytes]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class CommandDone:
    """A result without rows: what the server says has been done."""

    tag: bytes


Result: TypeAlias = MessageRows | CommandDone


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + number(len(body) + 4) + body


def field(value: bytes | None) -> bytes:
    return number(-1) if value is None else number(len(value)) + value


# What the server says


def row_description(columns: Sequence[bytes]) -> bytes:
    described = (name + b"\0" + bytes(6) + number(TEXT_OID) + number(-1, 2) + number(-1) + bytes(2) for name in columns)
    return message(b"T", number(len(columns), 2) + b"".join(described))


def result(answer: Result, described: bool = False) -> bytes:
    """A whole result; `described` if its columns were told before."""
    if isinstance(answer, CommandDone):
        return message(b"C", answer.tag + b"\0")
    rows = (message(b"D", number(len(row), 2) + b"".join(map(field, row))) for row in answer.rows)
    head = b"" if described else row_description(answer.columns)
    return head + b"".join(rows) + message(b"C", b"SELECT %d\0" % len(answer.rows))


def error(refusal: ServerError, severity: bytes = b"ERROR") -> bytes:
    fields = (b"S" + severity, b"V" + severity, b"C" + refusal.state.encode(), b"M" + refusal.message.encode())
    return message(b"E", b"\0".join(fields) + b"\0\0")


def notification(pid: int, channel: str, payload: str) -> bytes:
    return message(b"A", number(pid) + channel.encode() + b"\0" + payload.encode() + b"\0")


def ready(status: bytes = b"I") -> bytes:
    return message(b"Z", status)


def welcome(pid: int, secret: int, settings: dict[str, str]) -> bytes:
    """What follows the log-in."""
    told = (message(b"S", name.encode() + b"\0" + value.encode() + b"\0") for name, value in settings.items())
    key = message(b"K", number(pid) + secret.to_bytes(4, "big"))
    return message(b"R", number(0)) + b"".join(told) + key + ready()


# What a client says


def startup(user: str, database: str) -> bytes:
    body = number(PROTOCOL) + b"user\0%b\0database\0%b\0\0" % (user.encode(), database.encode())
    return number(len(body) + 4) + body


def parse(name: bytes, text: bytes) -> bytes:
    return message(b"P", name + b"\0" + text + b"\0" + bytes(2))


def bind_and_execute(name: bytes, values: Sequence[bytes | None]) -> bytes:
    bound = b"\0" + name + b"\0" + bytes(2) + number(len(values), 2) + b"".join(map(field, values)) + bytes(2)
    return message(b"B", bound) + message(b"D", b"P\0") + message(b"E", b"\0" + number(0))


SYNC = message(b"S")
TERMINATE = message(b"X")


def read_values(body: bytes, at: int) -> list[bytes | None]:
    """Values with their lengths, after how many there are."""
    values: list[bytes | None] = []
    count = int.from_bytes(body[at : at + 2], "big")
    at += 2
    for _ in range(count):
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        at += 4
        values.append(None if size < 0 else body[at : at + size])
        at += max(0, size)
    return values


def read_fields(body: bytes) -> dict[int, bytes]:
    """The fields of an error, by their letter."""
    return {item[0]: item[1:] for item in body.split(b"\0") if item}


class MessageReader:
    """Cuts what comes into messages: (kind, body); the first of a client's has the kind `b""`."""

    def __init__(self, of_client: bool) -> None:
        self._buffer = b""
        self.starting = of_client
        """Whether what comes next has no kind."""

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> tuple[bytes, bytes] | None:
        head = 0 if self.starting else 1
        if len(self._buffer) < head + 4:
            return None
        end = head + int.from_bytes(self._buffer[head : head + 4], "big")
        if len(self._buffer) < end:
            return None
        found = self._buffer[:head], self._buffer[head + 4 : end]
        self._buffer = self._buffer[end:]
        return found

    @property
    def unread(self) -> bool:
        return bool(self._buffer)
