"""Leases: ids that keys hang on, and that end by themselves.

1. Who leads counts the time of leases; at all other members they last for ever. Nothing of that time is replicated: a
   new leader gives every lease its whole time again, and an election timeout on top.
2. A keep-alive is answered by whoever *believes* to lead, without asking anybody.
3. Leases that are over are looked for twice a second, and revoked through the log. A keep-alive that comes in between
   waits for that, and is then told that there is no such lease.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from . import errors

LONGEST_TTL_S = 9_000_000_000
LOOK_EVERY_S = 0.5
FOREVER = math.inf


@dataclass(slots=True)
class Lease:
    id: int
    ttl_s: int
    expires: float = FOREVER
    keys: set[bytes] = field(default_factory=set)

    def seconds_left(self, now: float) -> int:
        left = self.expires - now
        return 0 if left == FOREVER else int(left)


class Lessor:
    """The leases as one member knows them."""

    def __init__(self, shortest_ttl_s: int) -> None:
        self._shortest_ttl_s = shortest_ttl_s
        self.leases: dict[int, Lease] = {}
        self.primary = False
        self._over: dict[int, list[Callable[[int], None]]] = {}
        """Keep-alives that wait for a lease that is over to be revoked."""

    def copy(self) -> Lessor:
        twin = Lessor(self._shortest_ttl_s)
        twin.leases = {id_: Lease(id_, lease.ttl_s, keys=set(lease.keys)) for id_, lease in self.leases.items()}
        return twin

    def grant(self, id_: int, ttl_s: int, now: float) -> Lease:
        if ttl_s > LONGEST_TTL_S:
            raise errors.TTL_TOO_LARGE
        if id_ in self.leases:
            raise errors.LEASE_EXISTS
        lease = self.leases[id_] = Lease(id_, max(ttl_s, self._shortest_ttl_s))
        if self.primary:
            lease.expires = now + lease.ttl_s
        return lease

    def get(self, id_: int) -> Lease:
        lease = self.leases.get(id_)
        if lease is None:
            raise errors.LEASE_NOT_FOUND
        return lease

    def drop(self, id_: int) -> None:
        self.leases.pop(id_, None)
        for answer in self._over.pop(id_, []):
            answer(0)

    def renew(self, id_: int, now: float, answer: Callable[[int], None]) -> None:
        """Answer with its ttl, or 0 if there is no such lease. Only a primary is asked."""
        lease = self.leases.get(id_)
        if lease is None:
            answer(0)
        elif lease.expires <= now:
            self._over.setdefault(id_, []).append(answer)
        else:
            lease.expires = now + lease.ttl_s
            answer(lease.ttl_s)

    def attach(self, key: bytes, old: int, new: int) -> None:
        """A key was put, or deleted (then `new` is 0)."""
        if old and old in self.leases:
            self.leases[old].keys.discard(key)
        if new:
            self.leases[new].keys.add(key)

    def promote(self, now: float, extend_s: float) -> None:
        self.primary = True
        for lease in self.leases.values():
            lease.expires = now + lease.ttl_s + extend_s

    def demote(self) -> list[tuple[int, Callable[[int], None]]]:
        """It leads no more. The keep-alives that are to be asked of who leads now."""
        self.primary = False
        for lease in self.leases.values():
            lease.expires = FOREVER
        waiting, self._over = self._over, {}
        return [(id_, answer) for id_, answers in waiting.items() for answer in answers]

    def expired(self, now: float) -> list[int]:
        return [lease.id for lease in self.leases.values() if lease.expires <= now] if self.primary else []

    def next_expiry(self) -> float:
        return min((lease.expires for lease in self.leases.values()), default=FOREVER)
