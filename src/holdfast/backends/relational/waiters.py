"""Who is seen waiting and waits no longer, because the server refused to take it off the list.

The server is asked again with each release, for which nobody waits, until it was done. A row goes with its session.
"""

from __future__ import annotations

from collections.abc import Callable

from .connection import DatabaseConnection, Order, Request


class UnlistedWaiters:
    """`leave` writes the order that takes an owner off the list."""

    def __init__(self, leave: Callable[[str], Order]) -> None:
        self._leave = leave
        self._refused: dict[str, tuple[DatabaseConnection, Request | None]] = {}
        """On which session each one is seen, and what that was asked last."""

    def add(self, owner: str, session: DatabaseConnection | None) -> None:
        if session is not None:
            self._refused[owner] = session, None

    def ask_again(self) -> None:
        for owner, (session, request) in list(self._refused.items()):
            if session.closed or (request is not None and request.done and request.error is None):
                del self._refused[owner]
            elif request is None or request.done:
                self._refused[owner] = session, session.start(self._leave(owner))
