"""The flows of session locks: the server keeps the lock for as long as the connection lives, and frees it with it.

1. There is no ttl at the server. A lease's ttl says for how long its holder trusts a server that it has not heard from:
   a renewal asks whether the session is alive, and a session that ended is LOST (`session`) at once.
2. That trust is at most `patience` (10 s), so that a holder who is cut off has stopped before the server's keep-alives
   give its session up (25 s).
3. Only mutexes: nobody else is counted, and nobody else is seen. `lock_delay` and `hold_at_least` can not be kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...._core.flow import NOW, Call, Flow, Wait
from ....errors import Misconfigured
from ....model import Claim, Extension, Grant, Promises, Queued, Refusal
from ...line import Push, Release, Renew, Take, Taken, patience

PROMISES = Promises(
    frozenset({"fencing", "linearizable"}),
    {
        "durable": "a session lock ends with its session; use postgresql:// for locks that survive a restart",
        "shared": "session locks are mutexes; use postgresql://",
        "counting": "session locks are mutexes; use postgresql://",
    },
)


class SessionBackend:
    """The algorithm."""

    scheme = "postgresql+session"
    least_ttl = 0.5

    def __init__(self, cluster: str, promises: Promises, request_timeout: float) -> None:
        self.cluster = cluster
        self.promises = promises
        self._timeout = request_timeout

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant | Queued | None]:
        ask = claim.ask
        if ask.lock_delay or ask.hold_at_least or ask.capacity != 1:
            raise Misconfigured(
                f"{ask.name!r}: a session lock ends with its session, so lock_delay and hold_at_least can not be kept, "
                "and it is a mutex; use postgresql://"
            )
        sent: float = yield NOW
        timeout = self._timeout if within is None else min(self._timeout, within)
        replies: list[Taken] = yield Call(Take((claim,), queue), timeout)
        taken = replies[0]
        if taken.token:
            return Grant(taken.token, sent, patience(ask))
        return Queued(taken.look_again, taken.ahead, sent, patience(ask)) if queue else None

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        push: Push | None = yield Wait(claim.owner, timeout)
        # The server's answer came just now, and was given after the wait began: it is good from the last look on.
        return None if push is None else Grant(push.token, queued.since, queued.patience)

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[Sequence[Extension | Refusal | None]]:
        sent: float = yield NOW
        timeout = self._timeout if within is None else min(self._timeout, within)
        said: list[str] = yield Call(Renew(claims), timeout)
        return [
            Extension(sent, patience(claim.ask)) if word == "held" else Refusal(word)
            for claim, word in zip(claims, said, strict=True)
        ]

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        held: bool = yield Call(Release(claim, linger), self._timeout)
        return held
