"""One connection to one member: used by one flow at a time, for requests that are answered in their order."""

from __future__ import annotations

from ..._core.flow import Connection
from .http import parse


class EtcdConnection:
    """What the pool keeps."""

    __slots__ = ("__weakref__", "_buffer", "_replies", "connection", "member")

    def __init__(self, connection: Connection, member: int) -> None:
        self.connection = connection
        self.member = member
        """The number of the endpoint."""
        self._buffer = bytearray()
        self._replies: list[tuple[int, bytes]] = []

    def feed(self, data: bytes, count: int) -> list[tuple[int, bytes]] | None:
        """The replies to a request of so many RPCs, status and body of each; None until all of them have come."""
        if not data:
            raise ConnectionResetError("the member closed the connection")
        buffer, replies = self._buffer, self._replies
        buffer += data
        while (reply := parse(buffer)) is not None:
            replies.append(reply)
            if len(replies) == count:
                self._replies = []
                return replies
        return None
