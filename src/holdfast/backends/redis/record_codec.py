"""Records as calls of programs (`scripts/record.lua` says how they are kept), and what the replies mean.

On one server all records are in one bucket. A cluster has `BUCKETS_COUNT` of them, each with its index in one slot, so
that a record and what is noted of it are written in one step.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ...record import Record, Swapped
from ..execute import SECOND_US, us
from ..record_requests import ListRecords, SwapRecord, Touch
from .codec import Order
from .programs import Program
from .resp import bulks

BUCKETS_COUNT = 64
"""Of a cluster: so many slots share the load, and so many indexes are asked for a list."""
FoundRecord: TypeAlias = tuple[int, bytes, bytes, int]
"""How a program tells a record, in a list: version, owner, data, µs for which it is alive."""
TOUCHED = {1: True, 0: False}


@dataclass(frozen=True, slots=True)
class Bucket:
    """The keys that stand in one slot."""

    records: bytes
    """How the keys of records begin."""
    index: bytes
    state: bytes


class Listed(NamedTuple):
    """Some keys of one bucket; `up_to`: there may be more behind that one."""

    keys: list[str]
    up_to: str | None


class RecordCodec:
    """Writes calls for one namespace. `clustered`: each key has a slot of its own."""

    def __init__(self, namespace: str, chosen: Callable[[str], Program], *, clustered: bool) -> None:
        self._chosen = chosen
        tags = [f"{{{number}}}" for number in range(BUCKETS_COUNT)] if clustered else [""]
        self.buckets = [
            Bucket(
                *(f"{namespace}/{word}".encode() for word in (f"record{tag}/", f"records{tag}", f"records{tag}/state"))
            )
            for tag in tags
        ]

    def _bucket(self, key: bytes) -> Bucket:
        return self.buckets[crc32(key) % len(self.buckets)]

    def read(self, keys: Sequence[str]) -> Order:
        """Answers with a list of records or None."""
        names = [self._bucket(key.encode()).records + key.encode() for key in keys]

        def read(reply: list[FoundRecord | None]) -> list[Record | None]:
            return [_record(key, one) for key, one in zip(keys, reply, strict=True)]

        return Order(self._chosen("read_records"), 1 + len(names), bulks(len(names), *names), read, names[0])

    def swap(self, request: SwapRecord) -> Order:
        """Answers with what was `Swapped`."""
        key = request.key.encode()
        bucket = self._bucket(key)
        name = bucket.records + key
        ttl, keep_ms = us(request.ttl), max(1, int(request.keep * 1000))
        words: list[bytes | str | int] = [3, name, bucket.index, bucket.state]
        words += [key, request.expected, request.owner, ttl, keep_ms]
        if request.data is not None:
            words.append(request.data)

        def read(reply: list[int | FoundRecord | None]) -> Swapped:
            if not reply[0]:
                found = reply[1]
                return Swapped(False, None if isinstance(found, int) else _record(request.key, found))
            if request.data is None:
                return Swapped(True, None)
            version = reply[1]
            assert isinstance(version, int)
            return Swapped(True, Record(request.key, version, request.data, request.owner, request.ttl))

        return Order(self._chosen("swap_record"), len(words), bulks(*words), read, name)

    def touch(self, touches: Sequence[Touch]) -> Order:
        """All of one bucket. Answers with a list of True, False, or None: nobody can tell."""
        bucket = self._bucket(touches[0].key.encode())
        names = [bucket.records + touch.key.encode() for touch in touches]
        words = [word for touch in touches for word in (touch.owner, us(touch.ttl))]
        size = 2 + 3 * len(touches)
        written = bulks(len(names), *names, *words, bucket.index)
        return Order(self._chosen("touch_records"), size, written, _touched, names[0])

    def list(self, bucket: Bucket, request: ListRecords, after: str) -> Order:
        """Answers with a list of one `Listed`."""
        prefix, behind = request.prefix.encode(), after.encode()
        first = b"(" + behind if behind >= prefix and behind else b"[" + prefix
        last = b"(" + prefix + b"\xff"  # no key in UTF-8 has this byte
        words = bulks(1, bucket.index, bucket.records, first, last, request.limit)
        return Order(self._chosen("list_records"), 6, words, _listed, bucket.index)


def _record(key: str, said: FoundRecord | None) -> Record | None:
    if said is None:
        return None
    version, owner, data, remaining = said
    return Record(key, version, data, owner.decode(), remaining / SECOND_US)


def _touched(reply: list[int]) -> list[bool | None]:
    return [TOUCHED.get(said) for said in reply]


def _listed(reply: list[bytes | None]) -> list[Listed]:
    up_to, *keys = reply
    return [Listed([key.decode() for key in keys if key is not None], None if up_to is None else up_to.decode())]
