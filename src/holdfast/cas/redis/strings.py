"""A string of Redis. Redis keeps no version of it, so the value itself is the version.

1. The bytes that were read are compared in the step that writes: whoever changed the value in between is noticed, also
   one that knows nothing of this library (INCR, SET).
2. A value that was changed and changed back (A, B, A) passes. For `update` that is right: what it writes depends on the
   value alone. Who needs "nobody was here" counts versions in a hash (`RedisHash(…, version_field=…)`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ...errors import Misconfigured, Missing, VersionConflict
from ..codecs import ValueCodec, decoded, encoded
from ..update import Step, Versioned
from .requests import Delivery, RedisCommand, program

T = TypeVar("T")
WHAT = "the Redis key"


class StringResource(Generic[T]):
    """One string."""

    def __init__(self, key: str, codec: ValueCodec[T], to_bytes: Callable[[object], bytes]) -> None:
        self._key, self._codec, self._to_bytes = key, codec, to_bytes
        self._delivery = Delivery(key)
        self._where = f"{WHAT} {key!r}"

    def claim(self, token: int) -> Step[None]:
        return self._delivery.claim(token)

    def read(self) -> Step[Versioned[T]]:
        reply = yield RedisCommand(("GET", self._key))
        if reply is None:
            raise Missing(WHAT, self._key)
        data = self._to_bytes(reply)
        return Versioned(decoded(self._codec, data, self._where), data)

    def write(self, value: T, version: Hashable, token: int | None) -> Step[Versioned[T]]:
        if version is not None and not isinstance(version, bytes):
            raise Misconfigured(f"the version of {self._where} is what read() gave (bytes), not {version!r}")
        data = encoded(self._codec, value, self._where)
        words = (b"0", b"") if version is None else (b"1", version)
        if not (yield from self._delivery.write(program("string.lua"), (*words, data), token, self._where)):
            raise VersionConflict(WHAT, self._key, version)
        return Versioned(value, data)
