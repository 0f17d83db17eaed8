"""The client side of MariaDB's protocol, after the login: text of a statement out, a `QueryReply` in. No sockets here.

1. A command is one packet: length (3 bytes), number (0), COM_QUERY, text. Several may be sent before the first reply:
   the server takes them one after the other, and answers in the same order.
2. A reply is one result or several (a CALL: what its SELECTs gave, then its own end). Rows are those of the last
   result that has any; `changed` is what the end of the whole says.
3. A statement that is sent often is prepared once, and then named by its number, with its values in binary. If it gives
   rows, each is one text: what `row_of` makes of the two bytes before it are two empty ones.
4. An error ends the reply, wherever it comes. It is data here (`Reply.error`): whoever asked decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..relational.error_mapping import Refused, Rows

LONGEST_BYTES = 0xFFFFFF - 1
MORE_RESULTS_FLAG = 0x0008
OK, END, ERROR, NULL = 0x00, 0xFE, 0xFF, 0xFB
QUERY, PREPARE, EXECUTE = b"\x03", b"\x16", b"\x17"
QUIT = b"\x01\x00\x00\x00\x01"


class Garbled(Exception):
    """What came is not a reply; the connection cannot be used any more."""


@dataclass(slots=True)
class QueryReply:
    """What the server answered to one command."""

    rows: Rows
    changed: int = 0
    made: int = 0
    """What the statement gave to LAST_INSERT_ID."""
    error: Refused | None = None


def query(text: bytes, command: bytes = QUERY) -> bytes:
    """A statement as a packet."""
    size = len(text) + 1
    if size > LONGEST_BYTES:
        raise ValueError(f"a statement of {size} bytes; at most {LONGEST_BYTES} fit into a packet")
    return size.to_bytes(3, "little") + b"\x00" + command + text


def frame(number: int, body: bytes) -> bytes:
    """A packet of the log-in."""
    return len(body).to_bytes(3, "little") + bytes((number & 0xFF,)) + body


def prepare(text: bytes) -> bytes:
    return query(text, PREPARE)


def prepared(data: bytes) -> int | None:
    """The number of a statement, once all of the reply is there."""
    packets = []
    at = 0
    while len(data) - at >= 4 and (end := at + 4 + int.from_bytes(data[at : at + 3], "little")) <= len(data):
        packets.append(data[at + 4 : end])
        at = end
    if not packets:
        return None
    if packets[0][0] == ERROR:
        raise refused(packets[0])
    columns, values = int.from_bytes(packets[0][5:7], "little"), int.from_bytes(packets[0][7:9], "little")
    described = values + (values > 0) + columns + (columns > 0)
    return int.from_bytes(packets[0][1:5], "little") if len(packets) == 1 + described else None


def bound(kinds: str) -> bytes:
    """How the values of a prepared statement begin: `s` for text (bytes), `i` for a number."""
    types = b"".join(b"\xfc\x00" if kind == "s" else b"\x08\x00" for kind in kinds)
    return b"\x00\x01\x00\x00\x00" + bytes((len(kinds) + 7) // 8) + b"\x01" + types


def text_value(value: bytes) -> bytes:
    size = len(value)
    return (bytes((size,)) if size < NULL else b"\xfc" + size.to_bytes(2, "little")) + value


def number_value(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def number_at(packet: bytes, at: int) -> tuple[int, int]:
    """A length-encoded number, and where it ends."""
    first = packet[at]
    if first < NULL:
        return first, at + 1
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(packet[at + 1 : at + 1 + width], "little"), at + 1 + width


def row_of(packet: bytes) -> list[bytes | None]:
    row: list[bytes | None] = []
    at = 0
    while at < len(packet):
        if packet[at] == NULL:
            row.append(None)
            at += 1
        else:
            size, at = number_at(packet, at)
            row.append(packet[at : at + size])
            at += size
    return row


def refused(packet: bytes) -> Refused:
    """1 byte, the number (2), `#` and the SQLSTATE (6), the message."""
    text = packet[9:] if packet[3:4] == b"#" else packet[3:]
    return Refused(int.from_bytes(packet[1:3], "little"), text.decode("utf-8", "replace"))


class RowsReader:
    """Cuts what comes into replies."""

    __slots__ = ("_buffer", "_columns", "_in_rows", "_long", "_rows")

    def __init__(self) -> None:
        self._buffer = b""
        self._rows: Rows = []
        self._columns = 0
        """How many column descriptions are still to come, with the packet that ends them."""
        self._in_rows = False
        self._long = b""

    def feed(self, data: bytes) -> list[QueryReply]:
        """Every reply that is complete now."""
        buffer = self._buffer + data if self._buffer else data
        replies: list[QueryReply] = []
        at, size = 0, len(buffer)
        try:
            while size - at >= 4:
                end = at + 4 + int.from_bytes(buffer[at : at + 3], "little")
                if end > size:
                    break
                packet = buffer[at + 4 : end]
                at = end
                if len(packet) == 0xFFFFFF:
                    self._long += packet
                    continue
                if (reply := self._take(self._long + packet if self._long else packet)) is not None:
                    replies.append(reply)
                self._long = b""
        except (IndexError, KeyError) as error:
            raise Garbled(f"a packet that is no reply: {packet[:40]!r}") from error
        self._buffer = buffer[at:]
        return replies

    def _take(self, packet: bytes) -> QueryReply | None:
        first = packet[0]
        if self._columns:
            self._columns -= 1
            self._in_rows = not self._columns
            return None
        if first == ERROR:
            return self._done(0, 0, refused(packet))
        if self._in_rows:
            if first == END and len(packet) < 9:
                self._in_rows = False
                return self._ended(0, 0, packet[3] | packet[4] << 8)
            self._rows.append(row_of(packet))
            return None
        if first == OK:
            changed, at = number_at(packet, 1)
            made, at = number_at(packet, at)
            return self._ended(changed, made, packet[at] | packet[at + 1] << 8)
        if first == NULL:
            raise Garbled("the server asks for a file, which no statement of ours does")
        self._columns = number_at(packet, 0)[0] + 1
        self._rows = []
        return None

    def _ended(self, changed: int, made: int, status: int) -> QueryReply | None:
        return None if status & MORE_RESULTS_FLAG else self._done(changed, made, None)

    def _done(self, changed: int, made: int, error: Refused | None) -> QueryReply:
        reply = QueryReply(self._rows, changed, made, error)
        if error is not None:
            error.rows = self._rows
        self._rows = []
        self._in_rows = False
        return reply
