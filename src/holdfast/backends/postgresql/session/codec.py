"""The statements of session locks, and their replies."""

from __future__ import annotations

import hashlib

from ....model import Claim
from ...queue_backend import Allow, Survey
from ...relational.error_mapping import Rows
from ..codec import KEPT_COUNT, Codec, Order, nothing, yes
from ..programs import SQL


class SessionCodec:
    """Writes orders for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int) -> None:
        self._lines = Codec(namespace, host, pid)
        self._locks: dict[str, bytes] = {}

    def lock(self, name: str) -> bytes:
        """64 bits of a strong hash: no two names in use will ever meet."""
        if (key := self._locks.get(name)) is None:
            digest = hashlib.sha256(self._lines.key(name)).digest()
            key = b"%d" % int.from_bytes(digest[:8], "big", signed=True)
            if len(self._locks) >= KEPT_COUNT:
                self._locks.clear()
            self._locks[name] = key
        return key

    def take(self, claim: Claim, queue: bool, seen: bool) -> Order:
        values = (self.lock(claim.spec.name), *self._of(claim), b"t" if queue else b"f")
        return Order(SQL["session_again" if seen else "session_try"], values, _number)

    def wait(self, claim: Claim) -> Order:
        return Order(SQL["session_wait"], (self.lock(claim.spec.name), *self._of(claim)), _number)

    def queue(self, claim: Claim) -> Order:
        return Order(SQL["session_queue"], self._of(claim), nothing)

    def leave(self, owner: str) -> Order:
        return Order(SQL["session_leave"], (owner.encode(),), nothing)

    def unlock(self, name: str) -> Order:
        return Order(SQL["session_unlock"], (self.lock(name),), yes)

    def alive(self) -> Order:
        return Order(SQL["session_alive"], (), yes)

    def give_up(self, session: int) -> Order:
        return Order(SQL["session_give_up"], (b"%d" % session,), yes)

    def write(self, request: Survey | Allow) -> Order:
        order = self._lines.write(request)
        return order._replace(statement=SQL["session_survey"]) if isinstance(request, Survey) else order

    def tidy(self, most: int) -> Order:
        return self._lines.tidy(most)

    def _of(self, claim: Claim) -> tuple[bytes, bytes, bytes]:
        """The whole name, whose it is, and what others see of that."""
        kept = self._lines.details(claim)
        return kept.key, claim.owner.encode(), kept.who


def _number(rows: Rows) -> int:
    return int(rows[0][0] or 0)
