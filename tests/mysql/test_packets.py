"""The protocol after the login: whatever the pieces that replies come in, they are read as what they are."""

from __future__ import annotations

import pytest

from holdfast.backends.mysql.packets import LONGEST_BYTES, Garbled, QueryReply, RowsReader, number_at, query
from holdfast.backends.relational.error_mapping import Refused

COLUMN = b"\x03def\x00\x00\x00\x01a\x00\x0c\x3f\x00\x01\x00\x00\x00\x08\x81\x00\x00\x00\x00"


def packed(*packets: bytes) -> bytes:
    return b"".join(
        len(packet).to_bytes(3, "little") + bytes([number]) + packet for number, packet in enumerate(packets, 1)
    )


def done(changed: int = 0, more: bool = False) -> bytes:
    return bytes([0, changed, 0, 10 if more else 2, 0, 0, 0])


def end(more: bool = False) -> bytes:
    return b"\xfe\x00\x00" + bytes([10 if more else 2, 0])


UPDATE = packed(done(3))
SELECT = packed(b"\x02", COLUMN, COLUMN, end(), b"\x011\xfb", b"\x02xy\x00", end())
CALL = packed(b"\x01", COLUMN, end(True), b"\x0242", end(True), done(1))
ERROR = packed(b"\xff\xbd\x04#40001Deadlock found")
LONG = packed(b"\x01", COLUMN, end(), b"\xfd\x00\x00\x01" + b"x" * 65536, end())
REPLIES = [
    (UPDATE, QueryReply([], 3)),
    (SELECT, QueryReply([[b"1", None], [b"xy", b""]])),
    (CALL, QueryReply([[b"42"]], 1)),
    (LONG, QueryReply([[b"x" * 65536]])),
]


@pytest.mark.parametrize(("data", "expected"), REPLIES, ids=["update", "select", "call", "long"])
@pytest.mark.parametrize("size", [1, 3, 7, 1_000_000])
def test_replies_come_in_pieces(data: bytes, expected: QueryReply, size: int) -> None:
    reader = RowsReader()
    found = []
    for at in range(0, len(data), size if len(data) < 1000 else max(size, 1000)):
        step = size if len(data) < 1000 else max(size, 1000)
        found += reader.feed(data[at : at + step])
    assert found == [expected]


def test_replies_come_together_and_in_order() -> None:
    found = RowsReader().feed(UPDATE + ERROR + CALL + SELECT)
    assert [reply.changed for reply in found] == [3, 0, 1, 0]
    assert isinstance(found[1].error, Refused)
    assert (found[1].error.code, str(found[1].error)) == (1213, "Deadlock found")
    assert found[2].rows == [[b"42"]]
    assert found[3].rows == [[b"1", None], [b"xy", b""]]


def test_an_error_may_come_amid_rows() -> None:
    data = packed(b"\x01", COLUMN, end(), b"\x011", b"\xff\x25\x05#70100Query execution was interrupted")
    [reply] = RowsReader().feed(data + UPDATE)[:1]
    assert reply.error is not None
    assert reply.error.code == 1317
    assert reply.error.rows == [[b"1"]], "ears that were roused late have heard it already"


@pytest.mark.parametrize(
    ("data", "number"), [(b"\x07", 7), (b"\xfc\x01\x02", 513), (b"\xfe" + b"\x01" * 8, 0x0101010101010101)]
)
def test_numbers(data: bytes, number: int) -> None:
    assert number_at(data, 0) == (number, len(data))


@pytest.mark.parametrize("data", [packed(b"\x00"), packed(b"\xfb/etc/passwd"), packed(b"")])
def test_what_is_no_reply_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(Garbled):
        RowsReader().feed(data)


def test_a_statement_is_one_packet() -> None:
    assert query(b"DO 0") == b"\x05\x00\x00\x00\x03DO 0"
    with pytest.raises(ValueError, match="at most"):
        query(b"x" * LONGEST_BYTES)
