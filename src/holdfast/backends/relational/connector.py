"""What connectors share: the connections that they are making. Nobody else knows of them, so a close ends them here.

A connection is made beside those who wait for it (`dialer`), and may have a whole request timeout left when its
coordinator is closed: at a server that says nothing it would stay for as long.
"""

from __future__ import annotations

from typing import Protocol

from ..queue_backend import closed as closed_error


class Unfinished(Protocol):
    def close(self) -> None: ...

    def abandon(self) -> None: ...


class OpeningConnections:
    """Kept by a connector. Once it is closed nothing more is made."""

    def __init__(self) -> None:
        self._unfinished: dict[Unfinished, None] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._unfinished)

    def add(self, connection: Unfinished) -> None:
        """It exists from now on. If the coordinator was closed meanwhile it is ended at once, and that is raised."""
        if self._closed:
            connection.close()
            raise closed_error()
        self._unfinished[connection] = None

    def discard(self, connection: Unfinished) -> None:
        """It is made, and somebody's; or it has failed."""
        self._unfinished.pop(connection, None)

    def close(self) -> None:
        self._closed = True
        for connection in list(self._unfinished):
            connection.close()

    def abandon(self) -> None:
        """In a forked child: what is being made is the parent's."""
        for connection in self._unfinished:
            connection.abandon()
        self._unfinished.clear()
