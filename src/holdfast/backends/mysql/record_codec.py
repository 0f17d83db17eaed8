"""Requests about records as statements (see `codec`)."""

from __future__ import annotations

from ...record import Record, Swapped
from ..execute import us
from ..record_requests import ListRecords, ReadRecord, SwapRecord, Touch, TouchRecords
from ..relational.records import behind_prefix, record_of, swapped_of
from .codec import Codec, Order, hexed, quoted_hex
from .packets import QueryReply
from .replies import in_turn
from .short_cuts import NOW

RECORDS = b"""SELECT r.name, r.version, r.data, r.owner, GREATEST(0, r.alive_until - %(now)b)
FROM holdfast_record r FORCE INDEX (PRIMARY) WHERE %(which)b AND r.kept_until > %(now)b ORDER BY r.name
LIMIT %(limit)d"""
"""Of one moment: the time of a statement is that of its beginning. No lock."""


class RecordCodec(Codec):
    """Writes orders about records, too."""

    def write_record(self, request: object) -> Order:
        match request:
            case ReadRecord(key=key):
                which = b"r.name = %b" % self._key(key)
                return Order(RECORDS % {b"now": NOW, b"which": which, b"limit": 1}, self._record)
            case SwapRecord():
                return self._swap(request)
            case TouchRecords(touches=touches):
                return self._touch([*touches])
            case ListRecords(prefix=prefix, after=after, limit=limit):
                bounds = self._key(prefix), self._key(after), hexed(behind_prefix(self._prefix + prefix))
                which = b"r.name >= %b AND r.name > %b AND r.name < %b" % bounds
                return Order(RECORDS % {b"now": NOW, b"which": which, b"limit": limit}, self._records)
        return super().write_record(request)

    def _swap(self, request: SwapRecord) -> Order:
        data = b"NULL" if request.data is None else b"x'%b'" % request.data.hex().encode()
        numbers = us(request.ttl), us(request.keep)
        values = self._key(request.key), request.expected, data, hexed(request.owner), *numbers

        def read(reply: QueryReply) -> Swapped:
            return swapped_of(reply.rows[0], request, b"1")

        return Order(b"CALL holdfast_swap_record(%b,%d,%b,%b,%d,%d)" % values, read)

    def _touch(self, touches: list[Touch]) -> Order:
        """In the order of names, in which the rows are locked."""
        order = sorted(range(len(touches)), key=lambda at: touches[at].key.encode())
        words = "".join(self._touch_words(touches[at]) for at in order)

        def read(reply: QueryReply) -> list[bool]:
            return in_turn([letter == ord("1") for letter in reply.rows[0][0] or b""], order)

        return Order(b"CALL holdfast_touch_records(%b)" % quoted_hex(words), read)

    def _touch_words(self, touch: Touch) -> str:
        return f"{(self._prefix + touch.key).encode().hex()},{touch.owner.encode().hex()},{us(touch.ttl)},"

    def _record(self, reply: QueryReply) -> Record | None:
        return record_of(reply.rows[0], self._prefix) if reply.rows else None

    def _records(self, reply: QueryReply) -> list[Record]:
        return [record_of(row, self._prefix) for row in reply.rows]
