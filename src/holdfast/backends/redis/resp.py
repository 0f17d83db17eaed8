"""The protocol of Redis, versions 2 and 3, as far as it is needed: words out, replies in.

`RespReader` is for an installation without hiredis, whose reader has the same two methods, and is used where it is.
A reply is an int, bytes, None, a list (also for sets), a dict or an `Error`; errors are values, because one may stand
inside a list. A push is a list of a type of its own.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Reply: TypeAlias = "int | bytes | Error | list[Any] | dict[Any, Any] | None"
"""What a server answers; what stands inside a list or a dict is known to whoever has asked."""

NOT_YET = False
"""What a reader gives while a reply is not complete; never a reply itself (a boolean of version 3 is an int here)."""


class Error(Exception):
    """What the server said instead of a reply. `code` is its first word."""

    @property
    def code(self) -> str:
        return str(self.args[0]).partition(" ")[0]


class NotRedis(ConnectionError):
    """What came is no reply of Redis: another service answers there, or the connection is out of step."""


def bulk(word: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(word), word)


def bulks(*words: bytes | str | int) -> bytes:
    """Words of a command, each with its length."""
    return b"".join(bulk(word if isinstance(word, bytes) else str(word).encode()) for word in words)


def command(*words: bytes | str | int) -> bytes:
    """A whole command."""
    return b"*%d\r\n%b" % (len(words), bulks(*words))


class Pushed(list[Any]):
    """What the server sends unasked (version 3), between replies."""


class _Short(Exception):
    """The buffer ends before the reply does."""


class RespReader:
    """Replies from bytes, in Python. Starts a reply again from its beginning when more has come: replies are short."""

    def __init__(self) -> None:
        self._buffer = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        self._buffer = self._buffer[self._at :] + data
        self._at = 0

    def gets(self) -> Reply:
        """The next reply, or `NOT_YET`."""
        begin = self._at
        try:
            reply: Reply = self._reply()
            return reply
        except _Short:
            self._at = begin
            return NOT_YET

    def _line(self) -> bytes:
        end = self._buffer.find(b"\r\n", self._at)
        if end < 0:
            raise _Short
        line = self._buffer[self._at : end]
        self._at = end + 2
        return line

    def _reply(self) -> Any:
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b":":
            return int(rest)
        if kind in b"$=!":
            return self._text(int(rest), kind)
        if kind in b"*~":
            return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
        if kind == b">":
            return Pushed(self._reply() for _ in range(int(rest)))
        if kind == b"+":
            return rest
        if kind == b"-":
            return Error(rest.decode("utf-8", "replace"))
        if kind == b"_":
            return None
        if kind == b"#":
            return int(rest == b"t")
        if kind == b"%":
            return {self._reply(): self._reply() for _ in range(int(rest))}
        if kind in b",(":
            return rest
        raise NotRedis(f"not a reply of Redis: {line[:40]!r}")

    def _text(self, size: int, kind: bytes) -> Any:
        if size < 0:
            return None
        if len(self._buffer) < self._at + size + 2:
            raise _Short
        text = self._buffer[self._at : self._at + size]
        self._at += size + 2
        return Error(text.decode("utf-8", "replace")) if kind == b"!" else text
