"""MariaDB's packets, as the server reads and writes them.

1. A packet: length (3 bytes), number (1), payload. A command begins at number 0; its reply counts on from there.
2. A reply is one result or several; all but the last say that more are to come. A result is rows, or OK; ERR ends it.
3. Column descriptions are those that 10.11 sends for our statements: name, type, length and flags of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..relational.statement_runner import ServerError

AUTOCOMMIT, MORE_RESULTS = 0x0002, 0x0008
BINARY, UTF8 = 63, 45
TINY, LONG, LONGLONG, NULL_TYPE, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING = 1, 3, 8, 6, 250, 251, 252, 253
CAPABILITIES_FLAGS = 0x81FFF7FE
"""What 10.11 offers, without TLS."""

Row: TypeAlias = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Column:
    """What is said of one column of a result."""

    name: bytes
    kind: int = VAR_STRING
    length: int = 255
    flags: int = 0x80
    charset: int = BINARY
    decimals: int = 0
    schema: bytes = b""
    alias: bytes = b""
    table: bytes = b""
    origin: bytes = b""

    def packet(self) -> bytes:
        texts = (b"def", self.schema, self.alias, self.table, self.name, self.origin)
        numbers = (self.charset.to_bytes(2, "little"), self.length.to_bytes(4, "little"), bytes([self.kind]))
        fixed = b"".join(numbers) + self.flags.to_bytes(2, "little") + bytes([self.decimals, 0, 0])
        return b"".join(map(text, texts)) + bytes([len(fixed)]) + fixed


@dataclass(frozen=True, slots=True)
class PacketRows:
    """A result with rows."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    binary: bool = False
    """Of a prepared statement: each row is one text, with two bytes before it."""


@dataclass(frozen=True, slots=True)
class Done:
    """A result without rows. `made` is what the statement gave to LAST_INSERT_ID."""

    affected: int = 0
    made: int = 0
    info: bytes = b""


Result: TypeAlias = PacketRows | Done


def number(value: int) -> bytes:
    """Length-encoded."""
    if value < 0xFB:
        return bytes([value])
    for first, width in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
        if value < 1 << (8 * width):
            return bytes([first]) + value.to_bytes(width, "little")
    raise ValueError(value)


def text(value: bytes | None) -> bytes:
    return b"\xfb" if value is None else number(len(value)) + value


def ok(done: Done, status: int) -> bytes:
    info = text(done.info) if done.info else b""
    return b"\x00" + number(done.affected) + number(done.made) + status.to_bytes(2, "little") + b"\0\0" + info


def end_of(status: int) -> bytes:
    return b"\xfe\0\0" + status.to_bytes(2, "little")


def error(refusal: ServerError) -> bytes:
    state = b"#" + refusal.state.encode() if refusal.state else b""  # none before the log-in
    return b"\xff" + refusal.code.to_bytes(2, "little") + state + refusal.message.encode()


def reply(results: Sequence[Result], refusal: ServerError | None) -> list[bytes]:
    """All packets of a reply; `refusal` comes after these results."""
    packets: list[bytes] = []
    for at, result in enumerate(results):
        more = MORE_RESULTS if refusal is not None or at + 1 < len(results) else 0
        if isinstance(result, Done):
            packets.append(ok(result, AUTOCOMMIT | more))
        else:
            end = end_of(AUTOCOMMIT | more)
            packets += [number(len(result.columns)), *(column.packet() for column in result.columns), end]
            head = b"\0\0" if result.binary else b""
            packets += [*(head + b"".join(map(text, row)) for row in result.rows), end]
    return packets if refusal is None else [*packets, error(refusal)]


def prepared(statement: int, values: int) -> list[bytes]:
    """The reply to COM_STMT_PREPARE; the columns of an INSERT with RETURNING are described with each of its replies."""
    first = b"\0" + statement.to_bytes(4, "little") + b"\0\0" + values.to_bytes(2, "little") + b"\0\0\0"
    value = Column(b"?", NULL_TYPE, 0).packet()
    return [first, *[value] * values, *([end_of(AUTOCOMMIT)] if values else [])]


def framed(packets: Sequence[bytes], first: int) -> bytes:
    """Packets with their heads, numbered from `first` on."""
    heads = (len(packet).to_bytes(3, "little") + bytes([at % 256]) for at, packet in enumerate(packets, first))
    return b"".join(head + packet for head, packet in zip(heads, packets, strict=True))


def handshake(version: str, thread: int, salt: bytes) -> bytes:
    low, high = CAPABILITIES_FLAGS & 0xFFFF, CAPABILITIES_FLAGS >> 16
    words = b"\n" + f"5.5.5-{version}".encode() + b"\0" + thread.to_bytes(4, "little") + salt[:8] + b"\0"
    words += low.to_bytes(2, "little") + b"\x08" + AUTOCOMMIT.to_bytes(2, "little") + high.to_bytes(2, "little")
    return words + b"\x15" + bytes(6) + b"\x1d\0\0\0" + salt[8:] + b"\0mysql_native_password\0"


class SimPacketReader:
    """Cuts what a client sends into packets: (number, payload)."""

    def __init__(self) -> None:
        self._buffer = b""
        self.started = False
        """Whether a packet has begun and is not yet whole."""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        self._buffer += data
        packets = []
        while len(self._buffer) >= 4 and len(self._buffer) >= (end := 4 + int.from_bytes(self._buffer[:3], "little")):
            packets.append((self._buffer[3], self._buffer[4:end]))
            self._buffer = self._buffer[end:]
        self.started = bool(self._buffer)
        return packets
