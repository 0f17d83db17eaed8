"""Who of one coordinator holds or waits for which session lock: the part of a session client that asks no server.

A session may take a lock that it already holds once more, so the server does not keep two claims of one coordinator
apart: this queue does. Claims for one name stand in line here, and only the first one is at the server. A hold whose
connection is gone keeps its place until its holder has been told (by a renewal), has let go, or trusts it no longer:
else the next one would be let in while the first one still believes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ...model import Claim
from ..session_backend import trust

C = TypeVar("C")

LOOK_AGAIN_S = 3.0
"""How often a waiter comes back to itself; the server tells it of its turn without that."""


@dataclass(slots=True)
class Held(Generic[C]):
    """A lock in hand: on which connection, and under which token."""

    claim: Claim
    token: int
    connection: C
    until: float
    """When its holder stops to trust it, at the latest."""


@dataclass(slots=True)
class LocalQueue(Generic[C]):
    gone: Callable[[C], bool]
    """Whether a connection has ended, and the session with it."""
    holds: dict[str, Held[C]] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)

    def holder(self, name: str) -> Held[C] | None:
        """The first in line, if it holds."""
        line = self.lines.get(name)
        return self.holds.get(line[0]) if line else None

    def enter(self, name: str, owner: str, queue: bool, now: float) -> int | None:
        """How many stand before it here; None if it may not wait and somebody does."""
        line, held = self.lines.setdefault(name, []), self.holder(name)
        if held is not None and self.gone(held.connection) and now >= held.until:
            del line[0]
        if owner not in line:
            if line and not queue:
                return None
            line.append(owner)
        return line.index(owner)

    def hold(self, claim: Claim, token: int, connection: C, now: float) -> None:
        self.holds[claim.owner] = Held(claim, token, connection, now + trust(claim.spec))

    def heard(self, held: Held[C], now: float) -> None:
        """The server has said that it is held: so it is trusted anew."""
        held.until = now + trust(held.claim.spec)

    def holds_on(self, connection: C) -> bool:
        """Whether a lock lives on this connection."""
        return any(held.connection is connection for held in self.holds.values())

    def first(self, name: str, owner: str) -> bool:
        return self.lines.get(name, [])[:1] == [owner]

    def leave(self, name: str, owner: str) -> str | None:
        """Out of the line; answers with who is first now, if that has changed."""
        line = self.lines.get(name, [])
        was_first = self.first(name, owner)
        if owner in line:
            line.remove(owner)
        if not line:
            self.lines.pop(name, None)
            return None
        return line[0] if was_first else None
