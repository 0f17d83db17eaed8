"""Requests that may go together: who gives up its place does not wait behind all others who do.

1. One batch is under way at a time. What comes meanwhile leaves with the next one.
2. Whoever finds nothing under way sends for all who wait. If that fails, it has failed for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ..._core.flow import NEW_EVENT, NOW, Flow, WaitEvent, WakeEvent
from ...errors import BackendUnavailable, OutcomeUnknown
from .single_flight import once_more

Q = TypeVar("Q")
R = TypeVar("R")


class _Entry(Generic[Q, R]):
    __slots__ = ("error", "event", "replies", "request", "sent")

    def __init__(self, request: Q, event: WakeEvent) -> None:
        self.request = request
        self.event = event
        self.sent = False
        self.replies: list[R] = []
        self.error: Exception | None = None

    @property
    def over(self) -> bool:
        return bool(self.replies) or self.error is not None


class Batching(Generic[Q, R]):
    """`send` carries out some requests, `most` of them at once, and answers with the reply to each."""

    def __init__(self, send: Callable[[Sequence[Q], float], Flow[Sequence[R]]], most: int) -> None:
        self._send, self._most = send, most
        self._waiting: list[_Entry[Q, R]] = []
        self._busy = False

    @property
    def active(self) -> bool:
        """Whether some are under way, or wait."""
        return self._busy or bool(self._waiting)

    def call(self, request: Q, deadline: float) -> Flow[R]:
        entry: _Entry[Q, R] = _Entry(request, (yield NEW_EVENT))
        self._waiting.append(entry)
        try:
            while not entry.over:
                if not self._busy:
                    yield from self._send_all(deadline)
                    continue
                entry.event = yield NEW_EVENT
                now: float = yield NOW
                if self._may_go_on(entry):  # meanwhile
                    continue
                if now >= deadline:
                    late = OutcomeUnknown if entry.sent else BackendUnavailable
                    raise late("those who asked before were not answered in the time of a request")
                yield WaitEvent(entry.event, deadline - now)
        finally:
            if not entry.sent:
                self._waiting.remove(entry)
        if entry.error is not None:
            raise once_more(entry.error)
        return entry.replies[0]

    def _may_go_on(self, entry: _Entry[Q, R]) -> bool:
        return entry.over or not self._busy

    def _send_all(self, deadline: float) -> Flow[None]:
        self._busy = True
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        for entry in batch:
            entry.sent = True
        failed: Exception = OutcomeUnknown("whoever sent this was interrupted")
        try:
            replies = yield from self._send([entry.request for entry in batch], deadline)
            for entry, reply in zip(batch, replies, strict=True):
                entry.replies.append(reply)
        except Exception as error:  # noqa: BLE001  told to each of them
            failed = error
        finally:
            self._busy = False
            for entry in batch:
                if not entry.over:
                    entry.error = failed
                entry.event.set()
            if self._waiting:
                self._waiting[0].event.set()
