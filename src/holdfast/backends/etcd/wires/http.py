"""Just enough HTTP/1.1 to speak with etcd's gateway: requests as bytes, and replies out of a buffer. No sockets here.

Measured against http.client on the same kept-alive connection this costs a third of the CPU (see the ADR).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ....errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from ..rpc import Rejected, Rpc

UNAUTHENTICATED = 16
OLD_TOKEN = "revision of auth store is old"
"""What etcd says, as INVALID_ARGUMENT, of a signed token that was made before a user or role was changed."""
NO_SUCH_PATH = (404, 405, 501)
PASSED_ON = (5, 9)
"""NOT_FOUND and FAILED_PRECONDITION: for the flows to judge."""
NOT_TAKEN = ("no leader", "not capable", "too many requests", "space exceeded", "connection refused")


_decode = json.JSONDecoder().raw_decode  # what json.loads comes to, once it is sure of the encoding


class Garbled(Exception):
    """What came is no reply of a gateway."""


class Unauthenticated(Exception):
    """The token is not (or no longer) good."""


def request(rpcs: Sequence[Rpc], head: str) -> bytes:
    """All in one write. `head`: the header lines that are the same for all."""
    if len(rpcs) == 1:
        rpc = rpcs[0]
        return f"POST {rpc.path} HTTP/1.1\r\n{head}Content-Length: {len(rpc.body)}\r\n\r\n{rpc.body}".encode()
    return "".join(
        f"POST {rpc.path} HTTP/1.1\r\n{head}Content-Length: {len(rpc.body)}\r\n\r\n{rpc.body}" for rpc in rpcs
    ).encode()


def log_in(user: str, password: str) -> Rpc:
    return Rpc("/v3/auth/authenticate", json.dumps({"name": user, "password": password}))


def parse(buffer: bytearray) -> tuple[int, bytes] | None:
    """Take one whole reply (status, body) out of the buffer; None if it is not all there."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    if buffer[:7] != b"HTTP/1.":
        raise Garbled(bytes(buffer[:80]))
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
        raise Garbled(bytes(buffer[:80]))
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


def read(status: int, body: bytes) -> Any:
    """The answer to one request, or the `Rejected` that is for the flows to judge; raises all that is not."""
    if status == 200:
        try:
            answer = _decode(body.decode())[0]
        except ValueError:
            raise no_answer(body) from None
        if answer.__class__ is not dict:
            raise no_answer(body)
        return answer
    try:
        told = json.loads(body)
        if isinstance(told.get("error"), dict):  # of a stream
            told = told["error"]
        code, message = int(told.get("code", told.get("grpc_code", 0))), str(told.get("message") or told.get("error"))
    except (ValueError, AttributeError):
        if status in NO_SUCH_PATH:
            raise Misconfigured(
                f"there is no gateway of etcd ({status}: {shown(body)}); see that the address is that of a client port "
                "of etcd, and that etcd runs without --enable-grpc-gateway=false"
            ) from None
        code, message = 0, f"{status} {shown(body)}"
    if code == UNAUTHENTICATED or status == 401 or OLD_TOKEN in message:
        raise Unauthenticated(message)
    if code in PASSED_ON:
        return Rejected(code, message)
    raise trouble(code, message)


def shown(body: bytes) -> str:
    return body.decode(errors="replace")[:200].strip()


def no_answer(body: bytes) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"what came is no answer of etcd: {shown(body)!r}; see that the address is that of a client port of etcd, and "
        "what stands in between"
    )


def trouble(code: int, message: str) -> HoldfastError:
    """What an error of etcd means."""
    if code == 7 or "user name" in message:  # PERMISSION_DENIED
        return Misconfigured(f"etcd does not allow it: {message}; give user:password@ in the URL, and the user a role")
    if code in (3, 12):  # INVALID_ARGUMENT, UNIMPLEMENTED
        return Misconfigured(f"etcd refused the request: {message}")
    if any(word in message for word in NOT_TAKEN):
        return BackendUnavailable(f"etcd can not take the request now: {message}")
    return OutcomeUnknown(f"etcd did not say what became of the request: {message or code}")


class Messages:
    """The messages of a watch, out of what comes in."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begun = False
        self._text = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete by now, as they stand there."""
        buffer = self._buffer
        buffer += data
        if not self._begun:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return []
            if buffer[9:12] != b"200":
                raise Garbled(bytes(buffer[:80]))
            del buffer[: end + 4]
            self._begun = True
        while (found := chunk(buffer, 0)) is not None:
            part, begin = found
            del buffer[:begin]
            if part is None:
                raise Garbled(b"the watch ended")
            self._text += part
        *lines, self._text = self._text.split(b"\n")
        return [line for line in lines if line.strip()]
