"""A waiter's stream of events: a connection of its own, on which etcd answers to one request as long as it is open.

1. A stream over HTTP/1.1 takes its watches with its request, so each waiter has a stream, which it reads itself.
2. etcd says of each watch that it has begun. One that does not is not there, whatever became of it: what stands in
   between may cut a request. Until all have begun nothing that is heard is a grant, only a reason to look; and if they
   have not begun after a while, the stream is of no use.
3. What comes while nobody waits is read by the next wait.
"""

from __future__ import annotations

from ..._core.flow import NEW_EVENT, NOW, Connection, Flow, Receive, WaitEvent, WakeEvent
from ..ordered_keys.handoff import HANDED, LOOK
from .http import LAST_REQUEST, REQUIRE_LEADER, MalformedReply, WatchMessages, request
from .rpc import Rpc
from .watch import Watch

BEGIN_S = 3.0
"""Within this time all watches of a stream begin."""
LISTEN_AFTER_S = 0.1
"""Who stands behind a hold of our own that lasts longer than this listens for what is done to it from outside."""
NEVER = float("inf")
_CREATED = b'"created"'


def wait_to_be_told(watch: Watch, deadline: float) -> Flow[str | None]:
    """By a claim of our own (`watch`, rule 7). None, too, if that one goes on holding: then it is time to listen."""
    listen_at = NEVER
    while watch.told is None and not watch.ended:
        event: WakeEvent = yield NEW_EVENT
        watch.wake_by(event)
        now: float = yield NOW
        if watch.is_next:
            listen_at = min(listen_at, now + LISTEN_AFTER_S)
        until = min(deadline, listen_at)
        if now >= until:
            break
        yield WaitEvent(event, until - now)
    return watch.told


class WatchStream:
    """One open stream."""

    __slots__ = ("_begin_by", "_messages", "_missing", "_watch", "connection")

    def __init__(self, connection: Connection, watch: Watch, now: float) -> None:
        self.connection = connection
        self._watch = watch
        self._messages = WatchMessages()
        self._missing = watch.count
        self._begin_by = now + BEGIN_S

    def request(self, head: str) -> bytes:
        return request((Rpc("/v3/watch", self._watch.body),), f"{head}{REQUIRE_LEADER}{LAST_REQUEST}")

    def verdict(self, deadline: float) -> Flow[str | None]:
        """Receive until something is heard that matters; None at the deadline."""
        while True:
            until = min(deadline, self._begin_by) if self._missing else deadline
            try:
                data: bytes = yield Receive(self.connection, until)
            except TimeoutError:
                if until < deadline:
                    raise MalformedReply(f"{self._missing} watches have not begun".encode()) from None
                return None
            if not data:
                raise ConnectionResetError("the member closed the watch")
            if (verdict := self.feed(data)) is not None:
                return verdict

    def feed(self, data: bytes) -> str | None:
        watch = self._watch
        if not self._missing and not self._messages.is_half_read and (seen := watch.glimpse(data)) is not None:
            return seen
        found: str | None = None
        for line in self._messages.feed(data):
            verdict = watch.hear(line)
            if self._missing:
                self._missing -= _CREATED in line
                if verdict == HANDED:
                    verdict = LOOK
            if verdict is not None and found != HANDED:
                found = verdict
        return found
