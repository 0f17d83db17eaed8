"""Grants that survive: WAIT and WAITAOF behind each take and renewal, on the same connection.

The server counts who has the writes of *this* connection, so the question must follow the write on it; asked on
another one the answer means nothing. Too few, and the request counts as not done: the flow tries it again, and in the
end withdraws the claim.
"""

from __future__ import annotations

from typing import Any

from ...errors import BackendUnavailable
from .resp import Error, command


class Durability:
    """`replicas` that must have a grant; `aof`: how many must have it on disk, the primary among them or not."""

    def __init__(self, replicas: int, aof: tuple[int, int] | None, timeout: float) -> None:
        self.replicas = replicas
        self.aof = aof
        waited = max(1, int(timeout * 1000))
        if aof is not None:
            self.frame = command("WAITAOF", aof[0], max(aof[1], replicas), waited)
        else:
            self.frame = command("WAIT", replicas, waited)

    def check(self, confirmed: Any, reply: Any) -> None:
        """Raise unless enough have confirmed. An error reply to the request itself is looked at elsewhere."""
        if isinstance(reply, Error):
            return
        if isinstance(confirmed, Error):
            raise BackendUnavailable(f"Redis can not confirm that a grant is safe: {confirmed}")
        needed = [self.replicas] if self.aof is None else [self.aof[0], max(self.aof[1], self.replicas)]
        found = [confirmed] if self.aof is None else confirmed
        if any(have < need for have, need in zip(found, needed, strict=True)):
            raise BackendUnavailable(
                f"a grant was confirmed by {found} where {needed} are required "
                f"({'replicas' if self.aof is None else 'own disk, disks of replicas'}); it does not count"
            )
