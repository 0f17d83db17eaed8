"""Grants that survive: WAIT and WAITAOF behind each take and renewal, on the same connection.

The server counts who has the writes of *this* connection, so the question must follow the write on it; asked on
another one the answer means nothing. Too few, and the request counts as not done: a claim is withdrawn at once, and the
flow may try it again.
"""

from __future__ import annotations

from typing import Any

from ...errors import BackendUnavailable
from .resp import Error, command


class NotConfirmed(BackendUnavailable):
    """Carried out, but not by enough: it would not survive."""


class Durability:
    """`replicas` that must have a grant; `aof`: how many must have it on disk, the primary among them or not."""

    def __init__(self, replicas: int, aof: tuple[int, int] | None, timeout: float) -> None:
        self.replicas = replicas
        self.aof = aof
        self._timeout = timeout

    def frame(self, timeout: float) -> bytes:
        """The question, to go out behind a request that may take so long: the answer must come before that."""
        waited = max(1, int(min(self._timeout, 0.8 * timeout) * 1000))
        if self.aof is not None:
            return command("WAITAOF", self.aof[0], max(self.aof[1], self.replicas), waited)
        return command("WAIT", self.replicas, waited)

    def check(self, confirmed: Any, reply: Any) -> None:
        """Raise unless enough have confirmed. An error reply to the request itself is looked at elsewhere."""
        if isinstance(reply, Error):
            return
        if isinstance(confirmed, Error):
            raise NotConfirmed(f"Redis cannot confirm that a grant is safe: {confirmed}")
        needed = [self.replicas] if self.aof is None else [self.aof[0], max(self.aof[1], self.replicas)]
        found = [confirmed] if self.aof is None else confirmed
        if any(have < need for have, need in zip(found, needed, strict=True)):
            raise NotConfirmed(
                f"a grant was confirmed by {found} where {needed} are required "
                f"({'replicas' if self.aof is None else 'own disk, disks of replicas'}); it does not count"
            )
