"""Replies about records that both engines give in the same columns: name, version, data, owner, remaining (µs)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...record import Record, Swapped
from ..execute import SECOND_US
from ..record_requests import SwapRecord
from .replies import text_of

LAST_POINT, BEFORE_SURROGATES = 0x10FFFF, 0xD7FF
Decode = Callable[[bytes], bytes]
"""Data as an engine sends it, to what was written."""


def behind_prefix(prefix: str) -> str:
    """The first text that is behind all that begin with this prefix, in the order of code points, which UTF-8 keeps."""
    rest = prefix.rstrip(chr(LAST_POINT))
    point = ord(rest[-1])
    return rest[:-1] + chr(0xE000 if point == BEFORE_SURROGATES else point + 1)


def record_of(row: Sequence[bytes | None], prefix: str, decode: Decode = bytes) -> Record:
    name, version, data, owner, remaining = row
    return Record(
        text_of(name).removeprefix(prefix),
        int(version or 0),
        decode(data or b""),
        text_of(owner),
        int(remaining or 0) / SECOND_US,
    )


def swapped_of(row: Sequence[bytes | None], request: SwapRecord, yes: bytes, decode: Decode = bytes) -> Swapped:
    """From whether it was done, and what is there then: of what was written the version and how long it is alive."""
    done, version, data, owner, remaining = row
    if version is None:
        return Swapped(done == yes, None)
    if done != yes or request.data is None:
        return Swapped(done == yes, record_of((request.key.encode(), version, data, owner, remaining), "", decode))
    return Swapped(
        True, Record(request.key, int(version), request.data, request.owner, int(remaining or 0) / SECOND_US)
    )
