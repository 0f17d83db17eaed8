"""What the client of session locks needs of an engine's codec."""

from __future__ import annotations

from typing import Protocol

from ...model import Claim
from ..queue_backend import Allow, Survey
from .connection import Order


class SessionLockCodec(Protocol):
    """Writes the orders of session locks."""

    def take(self, claim: Claim, queue: bool, seen: bool) -> Order:
        """Take it if it is free: its token, or 0. `seen`: others have seen it waiting."""
        ...

    def wait(self, claim: Claim) -> Order:
        """In the server's own line: its token, or 0 if that took very long."""
        ...

    def queue(self, claim: Claim) -> Order:
        """Be seen waiting."""
        ...

    def leave(self, owner: str) -> Order:
        """No longer seen waiting."""
        ...

    def unlock(self, name: str) -> Order:
        """Whether this session held it."""
        ...

    def alive(self) -> Order: ...

    def give_up(self, session: int) -> Order:
        """Have another session's statement end; said on a connection of its own."""
        ...

    def write(self, request: Survey | Allow) -> Order: ...

    def tidy(self, most: int) -> Order: ...
