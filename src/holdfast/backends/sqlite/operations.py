"""What both wires of the embedded engine do around the store: the fast verbs first, and the wake-ups after."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

from ...errors import BackendUnavailable
from ...model import Claim
from ..queue_backend import QueueReply, QueueRequest, Release, Take, Taken
from ..record_requests import SwapRecord
from .file import Busy, give_way
from .store import Promotion, SQLiteStore
from .wakeup_socket import AVAILABLE, Notifier, folders_for

MOST_NAMES_COUNT = 1024
TRIES_COUNT = 16
"""At a busy file, to take out a waiter that is gone: each is longer than most writers need."""


class StoreOperations:
    """A store with a postman."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self.crowded: set[str] = set()
        """Names whose line was not empty lately: there the quick verbs would be a wasted try."""
        self._postman = Notifier(folders_for(store.path)) if AVAILABLE else None

    def quick(self, request: QueueRequest) -> QueueReply | None:
        """The verb in a statement, or in the few of a hand-over; None if it is not that simple."""
        if type(request) is Take:
            claim = request.claims[0]
            if len(request.claims) == 1 and claim.spec.name not in self.crowded:
                taken = self.store.take_free(claim)
                return None if taken is None else [taken]
        elif type(request) is Release and not request.linger:
            claim = request.claim
            if claim.spec.name in self.crowded:
                return self._hand_over(claim)
            return self.store.release_alone(claim) or None
        elif type(request) is SwapRecord:
            return self.store.swap_record(request)
        return None

    def whole(self, request: QueueRequest) -> QueueReply:
        """The verb in a transaction; whoever it promoted is woken, and whoever is gone is taken out of the line."""
        if type(request) is Take:
            return self.take(request, "")
        if type(request) is Release and not request.linger and self._hand_over(request.claim):
            return True
        reply, promoted = self.store.carry_out(request, "")
        crowded = bool(promoted)
        self._wake(promoted)
        if type(request) is Release:
            self._note(request.claim.spec.name, crowded)
        return reply

    def take(self, request: Take, wake: str) -> list[Taken]:
        """The same for a take; `wake` is where those who wait for it are told."""
        claim, alone = request.claims[0], len(request.claims) == 1
        if alone and request.queue and claim.spec.capacity == 1:
            taken = self.store.join(claim, wake)
            if taken is not None:
                self._note(claim.spec.name, True)
                return [taken]
        replies, promoted = self.store.carry_out(request, wake)
        self._wake(promoted)
        if alone:
            self._note(claim.spec.name, not replies[0].token)
        return replies

    def _hand_over(self, claim: Claim) -> bool | None:
        """The contended release of a mutex; None if it is not that simple. Before all else the next one is told."""
        if claim.spec.capacity != 1 or (heirs := self.store.hand_over(claim)) is None:
            return None
        crowded = bool(heirs)
        self._wake(heirs)
        self._note(claim.spec.name, crowded)
        return True

    def _note(self, name: str, crowded: bool) -> None:
        if not crowded:
            self.crowded.discard(name)
        elif len(self.crowded) < MOST_NAMES_COUNT:
            self.crowded.add(name)

    def _wake(self, promoted: list[Promotion]) -> None:
        while promoted and self._postman is not None:
            heir = promoted.pop()
            if not self._postman.send(heir.wake, heir.owner, heir.token, heir.after):
                promoted += self._take_out(heir)

    def _take_out(self, gone: Promotion) -> list[Promotion]:
        """Answers who is promoted instead. The request that led here is done: a busy file must not have it repeated."""
        for _ in range(TRIES_COUNT):
            try:
                return self.store.take_out(gone)
            except Busy:
                give_way()
        return []  # then its place ends with its patience

    def leave_lines(self, claims: Iterable[Claim]) -> None:
        """Before it is closed: take those out who wait. At a file that stays busy they end with their patience."""
        for claim in list(claims):
            for _ in range(TRIES_COUNT):
                try:
                    self.whole(Release(claim, 0.0))
                    break
                except Busy:
                    time.sleep(random.random() * 0.001)
                except BackendUnavailable:
                    return
            else:
                return

    def close(self) -> None:
        if self._postman is not None:
            self._postman.close()
        self.store.close()
