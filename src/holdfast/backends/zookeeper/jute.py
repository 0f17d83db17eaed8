"""Jute, ZooKeeper's way to write records: big-endian integers, and text, bytes and lists with their length before them.

A list or text of length -1 is none; it is read as an empty one. `JuteReader` goes through one record that is complete.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

_INT = struct.Struct("!i")
_LONG = struct.Struct("!q")
_STAT = struct.Struct("!qqqqiiiqiiq")


class Stat(NamedTuple):
    """What the server knows of a node. Times are milliseconds of its calendar."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    session: int
    size: int
    children: int
    pzxid: int


def integer(value: int) -> bytes:
    return _INT.pack(value)


def long(value: int) -> bytes:
    return _LONG.pack(value)


def flag(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def data(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value


def text(value: str) -> bytes:
    encoded = value.encode()
    return _INT.pack(len(encoded)) + encoded


def texts(values: Iterable[str]) -> bytes:
    encoded = [text(value) for value in values]
    return _INT.pack(len(encoded)) + b"".join(encoded)


class JuteReader:
    """Reads one record from its beginning, or from `at`."""

    __slots__ = ("_at", "_record")

    def __init__(self, record: bytes, at: int = 0) -> None:
        self._record = record
        self._at = at

    def integer(self) -> int:
        at = self._at
        self._at = at + 4
        value: int = _INT.unpack_from(self._record, at)[0]
        return value

    def long(self) -> int:
        at = self._at
        self._at = at + 8
        value: int = _LONG.unpack_from(self._record, at)[0]
        return value

    def flag(self) -> bool:
        self._at += 1
        return self._record[self._at - 1] != 0

    def data(self) -> bytes:
        size = self.integer()
        if size <= 0:
            return b""
        at = self._at
        self._at = at + size
        if self._at > len(self._record):
            raise struct.error(f"{size} bytes announced, {len(self._record) - at} there")
        return self._record[at : at + size]

    def text(self) -> str:
        return self.data().decode()

    def texts(self) -> list[str]:
        record, at, found = self._record, self._at, []
        (count,) = _INT.unpack_from(record, at)
        at += 4
        for _ in range(count):
            (size,) = _INT.unpack_from(record, at)
            at += 4 + size
            if at > len(record):
                raise struct.error(f"{size} bytes announced, more than there are")
            found.append(record[at - size : at].decode())
        self._at = at
        return found

    def stat(self) -> Stat:
        at = self._at
        self._at = at + _STAT.size
        return Stat._make(_STAT.unpack_from(self._record, at))

    @property
    def left(self) -> int:
        return len(self._record) - self._at
