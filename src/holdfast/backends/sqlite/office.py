"""What both wires of the embedded engine do around the store: the fast verbs first, and the wake-ups after."""

from __future__ import annotations

from typing import Any

from ..._core.line import Place
from ...model import Ask, Claim
from ..line import Release, Take, Taken
from .mailbox import AVAILABLE, Postman
from .store import SQLiteStore


class Office:
    """A store with a postman."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self._postman = Postman() if AVAILABLE else None

    def quick(self, request: Any) -> Any:
        """The verb in one statement, or None if it is not that simple."""
        kind = request.__class__
        if kind is Take and len(request.claims) == 1:
            token = self.store.take_free(request.claims[0])
            return [Taken(token)] if token else None
        if kind is Release and not request.linger:
            return self.store.release_alone(request.claim) or None
        return None

    def whole(self, request: Any, wake: str = "") -> Any:
        """The verb in a transaction; whoever it promoted is woken, and whoever is gone is taken out of the line."""
        reply, promoted = self.store.carry_out(request, wake)
        if self._postman is not None:
            self._wake(promoted)
        return reply

    def _wake(self, promoted: list[tuple[str, Place]]) -> None:
        assert self._postman is not None
        while promoted:
            name, place = promoted.pop()
            if not self._postman.send(place.wake, place.owner, place.token):
                gone = Claim(Ask(name), place.owner, place.actor)
                promoted += self.store.carry_out(Release(gone, 0.0), "")[1]

    def close(self) -> None:
        if self._postman is not None:
            self._postman.close()
        self.store.close()
