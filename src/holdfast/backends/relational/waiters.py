"""Who waits in the server's line, and who is seen waiting and waits no longer.

1. Nobody can tell from a session that has rested whether it still reaches the server, and a wait is not answered soon.
   So the server is asked whether the session lives, and the wait is sent right behind: without an answer to the first
   the session has ended.
2. The server may refuse to take a waiter off the list, or there is no time: it is asked again at once and with each
   release, until it was done, and nobody waits for that. A row goes with its session.
"""

from __future__ import annotations

from collections.abc import Callable

from ..._core.flow import NOW, Flow
from .connection import TOO_LONG, DatabaseConnection, Order, Request


class ServerWaiter:
    """One wait, on a session of its own (rule 1). `alive_by`: when the first answer must be there."""

    def __init__(self, session: DatabaseConnection, alive_by: float, alive: Order, wait: Order) -> None:
        self.session = session
        self._alive = session.start(alive)
        self._alive_by = alive_by
        self.request = session.start(wait)

    def until(self, deadline: float) -> Flow[bool]:
        """Wait for the answer; False if it is not there by the deadline."""
        if not self._alive.done and not (yield from self.session.until(self._alive, min(deadline, self._alive_by))):
            if (yield NOW) < self._alive_by:
                return False
            self.session.fail(TOO_LONG)
        return (yield from self.session.until(self.request, deadline))


class UnlistedWaiters:
    """See rule 2. `leave` writes the order that takes an owner off the list."""

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
