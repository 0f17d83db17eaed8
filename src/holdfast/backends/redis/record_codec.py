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
from .resp import bulk, bulks

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
    words: bytes
    """The index and the state, as words of a call."""


class Listed(NamedTuple):
    """Some keys of one bucket; `up_to`: there may be more behind that one."""

    keys: list[str]
    up_to: str | None


class RecordCodec:
    """Writes calls for one namespace. `clustered`: each key has a slot of its own."""

    def __init__(self, namespace: str, chosen: Callable[[str], Program], *, clustered: bool) -> None:
        self._chosen = chosen
        tags = [f"{{{number}}}" for number in range(BUCKETS_COUNT)] if clustered else [""]
        self.buckets = [self._made_bucket(namespace, tag) for tag in tags]

    @staticmethod
    def _made_bucket(namespace: str, tag: str) -> Bucket:
        index, state = f"{namespace}/records{tag}".encode(), f"{namespace}/records{tag}/state".encode()
        return Bucket(f"{namespace}/record{tag}/".encode(), index, state, bulks(index, state))

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
        name, size, words = self._swap_words(request)
        return Order(self._chosen("swap_record"), size, words, lambda reply: swapped_of(reply, request), name)

    def swapping(self, request: SwapRecord) -> bytes:
        """The same, whole."""
        _, size, words = self._swap_words(request)
        return self._chosen("swap_record").call(size) + words

    def _swap_words(self, request: SwapRecord) -> tuple[bytes, int, bytes]:
        """The name of the record, and how many words in which bytes: in one piece, for an attempt is two of these."""
        key, owner, expected = request.key.encode(), request.owner.encode(), b"%d" % request.expected
        bucket = self._bucket(key)
        name = bucket.records + key
        ttl, keep_ms = b"%d" % us(request.ttl), b"%d" % max(1, int(request.keep * 1000))
        words = b"$1\r\n3\r\n$%d\r\n%b\r\n%b$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (
            len(name), name, bucket.words, len(key), key, len(expected), expected, len(owner), owner, len(ttl), ttl,
            len(keep_ms), keep_ms,
        )  # fmt: skip
        return (name, 9, words) if request.data is None else (name, 10, words + bulk(request.data))

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


def swapped_of(reply: list[int | FoundRecord | None], request: SwapRecord) -> Swapped:
    """From the reply of `swap_record.lua`."""
    if not reply[0]:
        found = reply[1]
        return Swapped(False, None if isinstance(found, int) else _record(request.key, found))
    if request.data is None:
        return Swapped(True, None)
    version = reply[1]
    assert isinstance(version, int)
    return Swapped(True, Record(request.key, version, request.data, request.owner, request.ttl))


def _touched(reply: list[int]) -> list[bool | None]:
    return [TOUCHED.get(said) for said in reply]


def _listed(reply: list[bytes | None]) -> list[Listed]:
    up_to, *keys = reply
    return [Listed([key.decode() for key in keys if key is not None], None if up_to is None else up_to.decode())]
