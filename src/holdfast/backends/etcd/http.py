"""Just enough HTTP/1.1 to speak with etcd's gateway: requests as bytes, and replies out of a buffer.

Measured against http.client on the same kept-alive connection this costs a third of the CPU (see the ADR).
"""

from __future__ import annotations

from collections.abc import Sequence

from .rpc import Rpc

REQUIRE_LEADER = "Grpc-Metadata-hasleader: true\r\n"
"""A member that has lost its leader must say so on a stream instead of staying silent."""
LAST_REQUEST = "Connection: close\r\n"
"""Go's server begins to answer a stream when it has read the first 512 bytes of the request, and throws away what it
has not read by then, so that the next request can begin; unless there will be none. So a watch says that it is the last
request of its connection. Without this, up to half of the streams whose request was longer lost watches, silently."""


class MalformedReply(Exception):
    """What came is no reply of a gateway."""


def request(rpcs: Sequence[Rpc], head: str) -> bytes:
    """All in one write. `head`: the header lines that are the same for all."""
    if len(rpcs) == 1:
        rpc = rpcs[0]
        return f"POST {rpc.path} HTTP/1.1\r\n{head}Content-Length: {len(rpc.body)}\r\n\r\n{rpc.body}".encode()
    return "".join(
        f"POST {rpc.path} HTTP/1.1\r\n{head}Content-Length: {len(rpc.body)}\r\n\r\n{rpc.body}" for rpc in rpcs
    ).encode()


def parse(buffer: bytearray) -> tuple[int, bytes] | None:
    """Take one whole reply (status, body) out of the buffer; None if it is not all there."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    if buffer[:7] != b"HTTP/1.":
        raise MalformedReply(bytes(buffer[:80]))
    status = int(buffer[9:12])
    at = buffer.find(b"\r\nContent-Length: ", 0, end)  # as etcd writes it
    begin = end + 4
    length = buffer[at + 18 : buffer.index(b"\r\n", at + 18)] if at >= 0 else header(buffer, end, b"content-length")
    if length is not None:
        size = int(length)
        if len(buffer) < begin + size:
            return None
        body = bytes(buffer[begin : begin + size])
        del buffer[: begin + size]
        return status, body
    if (header(buffer, end, b"transfer-encoding") or b"").strip() != b"chunked":
        raise MalformedReply(bytes(buffer[:80]))
    parts = []
    while True:
        found = chunk(buffer, begin)
        if found is None:
            return None
        part, begin = found
        if part is None:
            break
        parts.append(part)
    end = buffer.find(b"\r\n\r\n", begin - 2)  # after the last chunk: trailers, perhaps, and an empty line
    if end < 0:
        return None
    del buffer[: end + 4]
    return status, b"".join(parts)


def header(buffer: bytearray, end: int, name: bytes) -> bytes | None:
    """The value of a header, in lower case. What stands in between may have rewritten its name."""
    for line in buffer[:end].lower().split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key == name:
            return bytes(value)
    return None


def chunk(buffer: bytearray, begin: int) -> tuple[bytes | None, int] | None:
    """The chunk that begins there, and where the next one does. None for the last one's bytes; None: not all there."""
    line = buffer.find(b"\r\n", begin)
    if line < 0:
        return None
    size = int(buffer[begin:line], 16)
    if size == 0:
        return None, line + 2
    if len(buffer) < line + 2 + size + 2:
        return None
    return bytes(buffer[line + 2 : line + 2 + size]), line + 2 + size + 2


class WatchMessages:
    """The messages of a watch, out of what comes in."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begun = False
        self._text = b""

    @property
    def is_half_read(self) -> bool:
        """A part of a message has come, and not yet all of it."""
        return bool(self._buffer or self._text)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete by now, as they stand there."""
        buffer = self._buffer
        buffer += data
        if not self._begun:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return []
            if buffer[9:12] != b"200":
                raise MalformedReply(bytes(buffer[:80]))
            del buffer[: end + 4]
            self._begun = True
        while (found := chunk(buffer, 0)) is not None:
            part, begin = found
            del buffer[:begin]
            if part is None:
                raise MalformedReply(b"the watch ended")
            self._text += part
        *lines, self._text = self._text.split(b"\n")
        return [line for line in lines if line.strip()]
