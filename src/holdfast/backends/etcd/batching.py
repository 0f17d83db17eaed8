"""Small transactions that may go together: who gives up its place does not wait behind all others who do.

1. One request is under way at a time. What comes meanwhile leaves with the next one, in one transaction, where each is
   a transaction of its own with its own conditions.
2. Whoever finds nothing under way sends for all who wait. If that fails, it has failed for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from ..._core.flow import NEW_EVENT, NOW, Flow, WaitEvent, WakeEvent
from ...errors import BackendUnavailable, OutcomeUnknown
from ..connections.single_flight import once_more
from .rpc import Answer, Rejected, Replies, Rpc, Together, inner, txn

BATCH_COUNT = 100
"""etcd takes 128 operations, those within one of them included."""


class _Entry:
    __slots__ = ("error", "event", "reply", "request", "sent")

    def __init__(self, request: Together, event: WakeEvent) -> None:
        self.request = request
        self.event = event
        self.sent = False
        self.reply: Answer | Rejected | None = None
        self.error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.reply is not None or self.error is not None


class Batching:
    """Of one client. `ask` sends RPCs."""

    def __init__(self, ask: Callable[[Sequence[Rpc], float], Flow[Replies]]) -> None:
        self._ask = ask
        self._waiting: list[_Entry] = []
        self._busy = False

    def call(self, request: Together, deadline: float) -> Flow[Replies]:
        entry = _Entry(request, (yield NEW_EVENT))
        self._waiting.append(entry)
        try:
            while not entry.over:
                if not self._busy:
                    yield from self._send(deadline)
                    continue
                entry.event = yield NEW_EVENT
                now: float = yield NOW
                if self._may_go_on(entry):  # meanwhile
                    continue
                if now >= deadline:
                    late = OutcomeUnknown if entry.sent else BackendUnavailable
                    raise late("etcd did not answer to those who asked before in the time of a request")
                yield WaitEvent(entry.event, deadline - now)
        finally:
            if not entry.sent:
                self._waiting.remove(entry)
        if entry.error is not None:
            raise once_more(entry.error)
        assert entry.reply is not None
        return [entry.reply]

    def _may_go_on(self, entry: _Entry) -> bool:
        return entry.over or not self._busy

    def _send(self, deadline: float) -> Flow[None]:
        self._busy = True
        batch, self._waiting = self._waiting[:BATCH_COUNT], self._waiting[BATCH_COUNT:]
        for entry in batch:
            entry.sent = True
        failed: Exception = OutcomeUnknown("whoever sent this was interrupted")
        try:
            [reply] = yield from self._ask((_rpc(batch),), deadline)
            _tell(batch, reply)
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


def _rpc(batch: Sequence[_Entry]) -> Rpc:
    if len(batch) == 1:
        return txn(*batch[0].request)
    return txn((), [inner(*entry.request) for entry in batch])


def _tell(batch: Sequence[_Entry], reply: Answer | Rejected) -> None:
    if len(batch) == 1 or isinstance(reply, Rejected):
        for entry in batch:
            entry.reply = reply
        return
    for entry, said in zip(batch, reply["responses"], strict=True):
        entry.reply = cast(Answer, said["response_txn"])
