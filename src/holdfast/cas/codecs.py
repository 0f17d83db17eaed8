"""What the bytes of a register mean: a codec turns a value into bytes and back.

What is compared is the bytes as they were read, never their meaning: `{"a": 1}` with another order of keys is another
version. A codec of one's own is two functions: `ValueCodec("date", lambda day: day.isoformat().encode(), parse)`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..errors import Misconfigured

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValueCodec(Generic[T]):
    """A name for error messages, and two functions.

    >>> JSON.decode(JSON.encode({"paid": 5}))
    {'paid': 5}
    """

    name: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


def check_codec(codec: object, register: str) -> None:
    """Raise `Misconfigured` unless it is a codec."""
    if not isinstance(codec, ValueCodec):
        raise Misconfigured(f"{register} takes a codec (cas.INTEGER, cas.TEXT, cas.JSON, cas.BYTES), not {codec!r}")


def encoded(codec: ValueCodec[T], value: T, where: str) -> bytes:
    """The bytes of a value, or `Misconfigured`: nothing was sent then."""
    try:
        data = codec.encode(value)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Misconfigured(f"{value!r} cannot be written to {where} as {codec.name}: {error}") from error
    if not isinstance(data, bytes):
        raise Misconfigured(f"the codec {codec.name} of {where} made {type(data).__qualname__} of a value, not bytes")
    return data


def decoded(codec: ValueCodec[T], data: bytes, where: str) -> T:
    """The value of the bytes, or `Misconfigured`: nothing was changed."""
    try:
        return codec.decode(data)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        shown = data if len(data) <= 40 else data[:40] + b"..."
        raise Misconfigured(
            f"{where} has {shown!r}, which is not {codec.name}: {error}; nothing was changed"
        ) from error


def _integer(value: int) -> bytes:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("not a whole number")
    return b"%d" % value


def _bytes(value: bytes) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("not bytes")
    return bytes(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


BYTES: ValueCodec[bytes] = ValueCodec("bytes", _bytes, bytes)
"""The bytes themselves."""
TEXT: ValueCodec[str] = ValueCodec("text", str.encode, bytes.decode)
"""Text in UTF-8."""
INTEGER: ValueCodec[int] = ValueCodec("a whole number", _integer, int)
"""A whole number in decimal digits, as Redis' own INCR has it."""
JSON: ValueCodec[Any] = ValueCodec("JSON", _json, json.loads)
"""Whatever JSON can hold."""
