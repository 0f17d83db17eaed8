"""One connection to one member: used by one flow at a time, for requests that are answered in their order."""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import Connection, Exchange, Flow, Receive
from .http import parse, request
from .rpc import Rpc


class EtcdConnection:
    """What the pool keeps."""

    __slots__ = ("_buffer", "connection", "member")

    def __init__(self, connection: Connection, member: int) -> None:
        self.connection = connection
        self.member = member
        """The number of the endpoint."""
        self._buffer = bytearray()

    def exchange(self, rpcs: Sequence[Rpc], head: str, deadline: float) -> Flow[list[tuple[int, bytes]]]:
        """Send all in one write, and receive their replies: status and body of each."""
        data: bytes = yield Exchange(self.connection, request(rpcs, head), deadline)
        buffer, count = self._buffer, len(rpcs)
        replies: list[tuple[int, bytes]] = []
        while True:
            if not data:
                raise ConnectionResetError("the member closed the connection")
            buffer += data
            while (reply := parse(buffer)) is not None:
                replies.append(reply)
                if len(replies) == count:
                    return replies
            data = yield Receive(self.connection, deadline)
