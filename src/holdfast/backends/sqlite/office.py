"""What both wires of the embedded engine do around the store: the fast verbs first, and the wake-ups after."""

from __future__ import annotations

from typing import Any

from ...model import Ask, Claim
from ..line import Release, Take, Taken
from .mailbox import AVAILABLE, Postman
from .store import Promotion, SQLiteStore

MOST_CROWDED = 1024


class Office:
    """A store with a postman."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self._crowded: set[str] = set()
        """Names whose line was not empty lately: there the quick verbs would be a wasted try."""
        self._postman = Postman() if AVAILABLE else None

    def quick(self, request: Any) -> Any:
        """The verb in one statement, or None if it is not that simple."""
        kind = request.__class__
        if kind is Take and len(request.claims) == 1:
            claim = request.claims[0]
            if claim.ask.name not in self._crowded and (token := self.store.take_free(claim)):
                return [Taken(token)]
        elif kind is Release and not request.linger and request.claim.ask.name not in self._crowded:
            return self.store.release_alone(request.claim) or None
        return None

    def whole(self, request: Any, wake: str = "") -> Any:
        """The verb in a transaction; whoever it promoted is woken, and whoever is gone is taken out of the line."""
        match request:
            case Take(claims=[claim], queue=True) if claim.ask.capacity == 1 and (
                taken := self.store.join(claim, wake)
            ):
                reply: Any = [taken]
                promoted: list[Promotion] = []
            case Release(claim=claim, linger=0.0) if (
                claim.ask.capacity == 1 and (heirs := self.store.hand_over(claim)) is not None
            ):
                reply, promoted = True, heirs
            case _:
                reply, promoted = self.store.carry_out(request, wake)
        match request:
            case Take(claims=[claim]):
                self._note(claim.ask.name, not reply[0].token)
            case Release(claim=claim):
                self._note(claim.ask.name, bool(promoted))
        if promoted and self._postman is not None:
            self._wake(promoted)
        return reply

    def _note(self, name: str, crowded: bool) -> None:
        if not crowded:
            self._crowded.discard(name)
        elif len(self._crowded) < MOST_CROWDED:
            self._crowded.add(name)

    def _wake(self, promoted: list[Promotion]) -> None:
        assert self._postman is not None
        while promoted:
            name, owner, wake, token = promoted.pop()
            if not self._postman.send(wake, owner, token):
                gone = Claim(Ask(name), owner, "")
                promoted += self.store.carry_out(Release(gone, 0.0), "")[1]

    def close(self) -> None:
        if self._postman is not None:
            self._postman.close()
        self.store.close()
