"""The protocol of Redis as a server speaks it: requests in, replies out, in both versions.

1. A request is an array of bulk strings, or one line of words. What is neither ends the connection after an error.
2. A reply is written for the version that the session speaks: maps, pushes, doubles and nulls differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

LONGEST_LINE_BYTES = 64 * 1024
MOST_WORDS_COUNT = 1024 * 1024
LONGEST_WORD_BYTES = 512 * 1024 * 1024
STRANGER_WORDS_COUNT = 10
"""How many words, and how long ones, a request may have on a session that has not logged in."""
STRANGER_WORD_BYTES = 16384


class Status(str):
    """A simple string, such as OK."""


class ErrorReply(Exception):
    """An error reply: a code and what it says."""

    @property
    def code(self) -> str:
        return str(self.args[0]).partition(" ")[0]


class ProtocolError(Exception):
    """What came is no request: the session ends."""


@dataclass(frozen=True, slots=True)
class Push:
    """What the server sends unasked; an ordinary array in version 2."""

    items: tuple[bytes | int | None, ...]


@dataclass(frozen=True, slots=True)
class Double:
    value: float


class NullArray:
    """No list, where a list would stand."""


NULL_ARRAY = NullArray()

Reply: TypeAlias = (
    "int | bytes | Status | Push | Double | NullArray | Exception | list[Reply] | dict[bytes, Reply] | None"
)


def double_text(value: float) -> bytes:
    """As `%.17g` writes it: whole numbers without a point."""
    return b"%d" % value if value == int(value) and abs(value) < 1e17 else f"{value:.17g}".encode()


def encode(reply: Reply, version: int) -> bytes:
    if reply is None:
        return b"_\r\n" if version == 3 else b"$-1\r\n"
    if isinstance(reply, NullArray):
        return b"_\r\n" if version == 3 else b"*-1\r\n"
    if isinstance(reply, Status):
        return b"+%b\r\n" % reply.encode()
    if isinstance(reply, bytes):
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, Double):
        text = double_text(reply.value)
        return b",%b\r\n" % text if version == 3 else encode(text, version)
    if isinstance(reply, Push):
        items = b"".join(encode(item, version) for item in reply.items)
        return b"%b%d\r\n%b" % (b">" if version == 3 else b"*", len(reply.items), items)
    if isinstance(reply, dict):
        pairs = b"".join(encode(key, version) + encode(value, version) for key, value in reply.items())
        return b"%%%d\r\n%b" % (len(reply), pairs) if version == 3 else b"*%d\r\n%b" % (2 * len(reply), pairs)
    if isinstance(reply, list):
        return b"*%d\r\n%b" % (len(reply), b"".join(encode(item, version) for item in reply))
    return b"-%b\r\n" % str(reply).encode("utf-8", "surrogateescape")


@dataclass(slots=True)
class RequestReader:
    """Requests from bytes that come in pieces of any size."""

    stranger: bool = False
    """The session has not logged in: its requests are kept short."""
    _buffer: bytearray = field(default_factory=bytearray)
    _words: list[bytes] | None = None
    """Of the request under way."""
    _missing: int = 0
    _size: int = -1
    """Of the word under way; -1 while its length is not known."""

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> list[bytes] | None:
        """The next request, or None while it is not complete. An empty one is none at all."""
        while True:
            if self._words is None:
                begun = self._begin()
                if begun is None:
                    return None
                if begun:
                    return begun
                continue
            while self._missing:
                if not self._word():
                    return None
            words, self._words = self._words, None
            if words:
                return words

    def _line(self, limit_error: str) -> bytes | None:
        end = self._buffer.find(b"\r")
        if end < 0 or end + 1 >= len(self._buffer):
            if end < 0 and len(self._buffer) > LONGEST_LINE_BYTES:
                raise ProtocolError(limit_error)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _begin(self) -> list[bytes] | None:
        """Begin an array (answers with nothing), or take a line of words."""
        if not self._buffer:
            return None
        if self._buffer[:1] != b"*":
            return self._inline()
        line = self._line("too big mbulk count string")
        if line is None:
            return None
        count = _number(line[1:])
        if count is None or count > MOST_WORDS_COUNT:
            raise ProtocolError("invalid multibulk length")
        if self.stranger and count > STRANGER_WORDS_COUNT:
            raise ProtocolError("unauthenticated multibulk length")
        self._words, self._missing = [], max(0, count)
        return []

    def _inline(self) -> list[bytes] | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > LONGEST_LINE_BYTES:
                raise ProtocolError("too big inline request")
            return None
        line = bytes(self._buffer[:end]).removesuffix(b"\r")
        del self._buffer[: end + 1]
        if line.count(b'"') % 2 or line.count(b"'") % 2:
            raise ProtocolError("unbalanced quotes in request")
        return [word.strip(b"\"'") for word in line.split()]

    def _word(self) -> bool:
        assert self._words is not None
        if self._size < 0:
            line = self._line("too big bulk count string")
            if line is None:
                return False
            if line[:1] != b"$":
                raise ProtocolError(f"expected '$', got '{line[:1].decode('latin-1') or chr(13)}'")
            size = _number(line[1:])
            if size is None or not 0 <= size <= LONGEST_WORD_BYTES:
                raise ProtocolError("invalid bulk length")
            if self.stranger and size > STRANGER_WORD_BYTES:
                raise ProtocolError("unauthenticated bulk length")
            self._size = size
        if len(self._buffer) < self._size + 2:
            return False
        self._words.append(bytes(self._buffer[: self._size]))
        del self._buffer[: self._size + 2]
        self._size = -1
        self._missing -= 1
        return True


def _number(text: bytes) -> int | None:
    """Strictly as Redis reads it: no sign but a minus, no spaces, no leading zeros."""
    digits = text.removeprefix(b"-")
    return int(text) if digits.isdigit() and (digits == b"0" or digits[:1] != b"0") else None
