"""Requests about records as statements (see `codec`). Data is in hexadecimal, whatever the server is set to."""

from __future__ import annotations

from ...record import Record, Swapped
from ..execute import us
from ..record_requests import ListRecords, ReadRecord, SwapRecord, TouchRecords
from ..relational.error_mapping import Rows
from ..relational.records import behind_prefix, record_of, swapped_of
from .codec import Codec, Order, array
from .programs import SQL


class RecordCodec(Codec):
    """Writes orders about records, too."""

    def write_record(self, request: object) -> Order:
        match request:
            case ReadRecord(key=key):
                return Order(SQL["read_record"], (self.key(key),), self._record)
            case SwapRecord():
                return self._swap(request)
            case TouchRecords(touches=touches):
                names = array(self._prefix + each.key for each in touches)
                owners, ttls = array(each.owner for each in touches), array(us(each.ttl) for each in touches)
                return Order(SQL["touch_records"], (names, owners, ttls), _touched)
            case ListRecords(prefix=prefix, after=after, limit=limit):
                bounds = (self.key(prefix), behind_prefix(self._prefix + prefix).encode(), self.key(after))
                return Order(SQL["list_records"], (*bounds, b"%d" % limit), self._records)
        return super().write_record(request)

    def _swap(self, request: SwapRecord) -> Order:
        key, expected = self.key(request.key), b"%d" % request.expected

        def read(rows: Rows) -> Swapped:
            return swapped_of(rows[0], request, b"t", _data)

        if request.data is None:
            return Order(SQL["delete_record"], (key, expected), read)
        data, owner = b"\\x" + request.data.hex().encode(), request.owner.encode()
        spans = (b"%d" % us(request.ttl), b"%d" % us(request.keep))
        return Order(SQL["swap_record"], (key, expected, data, owner, *spans), read)

    def _record(self, rows: Rows) -> Record | None:
        return record_of(rows[0], self._prefix, _data) if rows else None

    def _records(self, rows: Rows) -> list[Record]:
        return [record_of(row, self._prefix, _data) for row in rows]


def _data(value: bytes) -> bytes:
    return bytes.fromhex(value.decode())


def _touched(rows: Rows) -> list[bool]:
    return [letter == ord("t") for letter in rows[0][0] or b""]
