"""The flows of session locks: the server keeps the lock for as long as the connection lives, and frees it with it.

1. There is no ttl at the server. A lease's ttl says for how long its holder trusts a server that it has not heard from:
   a renewal asks whether the session is alive, and a session that ended is LOST (`session`) then. Between processes two
   may believe to hold until then; within a coordinator nobody is let in before (`relational/local_queue.py`).
2. That trust is at most `patience` (10 s) or, with a long margin, `TRUST_S`, so that a holder who is cut off has
   stopped before the server gives up a session that it does not hear from (PostgreSQL by keep-alives, 25 s; MariaDB by
   its `wait_timeout`, 30 s).
3. Only mutexes. What would have to outlive the session or end before it cannot be kept: `lock_delay`,
   `hold_at_least`, the end of a silent hold with its ttl; and nobody can evict one lock of a session.
4. A request that is not answered in time ends its session, and every lock of that session. So none is asked in
   `HASTE_S`: who has less time waits a little longer, or (the keeper) has somebody else ask.
5. Claims of one coordinator stand in line in front of the server's own line, so the order is kept among the claims of
   one coordinator, and among coordinators, but not of all claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._core.flow import NOW, Call, Wait
from ..errors import BackendUnavailable, Misconfigured
from ..model import Claim, Extension, Grant, LockSpec, LockView, Promises, Queued, Refusal
from .queue_backend import Allow, Push, QueueFlow, Release, Renew, Survey, Take, Taken, patience

TRUST_S = 20.0
"""So many seconds after the last word at most, a holder has stopped; the server keeps a silent session for longer."""

HASTE_S = 1.0
"""A session has this time to answer, seconds, however little its caller has."""


def trust(spec: LockSpec) -> float:
    """How long a word from the server is good for; the holder stops a margin before that."""
    return min(patience(spec), TRUST_S + (spec.margin or 0.0))


def session_promises(table: str, ending: str, server: Promises) -> Promises:
    """What session locks keep at a server whose lock table (`table` is its scheme) keeps what `server` says.

    A standby that lags knows nothing of sessions; else the primary alone decides. `ending` ends a session by hand.
    """
    lags = {} if "linearizable" in server.kept else server.notes
    return Promises(
        frozenset({"fencing", "linearizable"} & server.kept),
        {
            **lags,
            "durable": f"a session lock ends with its session; use {table} for locks that survive a restart",
            "shared": f"session locks are mutexes; use {table}",
            "counting": f"session locks are mutexes; use {table}",
            "records": f"nothing outlives a session, so none are kept; use {table}",
            "ttl": "a session lock ends with its session or its release, however long ago its ttl was over; a lease is "
            "trusted for its ttl, and for 10 s at most (20 s with a long margin), after the last word from the server",
            "linger": f"nothing outlives a session, so lock_delay and hold_at_least are refused; use {table}",
            "session": "a session may end at any time (a restart, a fail-over, a reset, an operator): the server "
            "frees its locks at once, and its holder is told at its next renewal, a third of the ttl and 3.3 s later "
            "at most (7 s with a long margin). Meanwhile another process may hold the lock, with a larger token: claim "
            "a fence with it. Claims of one coordinator never hold together",
            "order": "each coordinator has one place in the server's line, so claims of two coordinators may cross",
            "predecessor": f"nothing outlives a session, so nobody can tell how the last hold ended; use {table}",
            "evict": f"one lock of a session cannot be broken without the others; {ending} ends it",
        },
        lacks=frozenset({"ttl", "linger", "order", "evict", "predecessor"}),
    )


class SessionBackend:
    """The algorithm. `table` is the scheme of the same engine's lock table."""

    least_ttl = 0.05

    def __init__(self, scheme: str, table: str, cluster: str, promises: Promises, request_timeout: float) -> None:
        self.scheme = scheme
        self.cluster = cluster
        self._table = table
        self.promises = promises
        self._timeout = request_timeout

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> QueueFlow[Grant | Queued | None]:
        spec = claim.spec
        if spec.lock_delay or spec.hold_at_least or spec.capacity != 1:
            raise Misconfigured(
                f"{spec.name!r}: a session lock ends with its session, so lock_delay and hold_at_least cannot be kept, "
                f"and it is a mutex; use {self._table}"
            )
        sent: float = yield NOW
        timeout = self._timeout if within is None else min(self._timeout, max(within, HASTE_S))
        replies: list[Taken] = yield Call(Take((claim,), queue), timeout)
        taken = replies[0]
        if taken.token:
            return Grant(taken.token, sent, trust(spec))
        return Queued(taken.look_again, taken.ahead, sent, trust(spec)) if queue else None

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> QueueFlow[Grant | None]:
        push: Push | None = yield Wait(claim.owner, timeout)
        # The server's answer came just now, and was given after the wait began: it is good from the last look on.
        return None if push is None else Grant(push.token, queued.since, queued.patience)

    def renew(
        self, claims: Sequence[Claim], within: float | None = None
    ) -> QueueFlow[Sequence[Extension | Refusal | None]]:
        if within is not None and within < HASTE_S:
            raise BackendUnavailable(
                f"a session is not asked in haste: {within:g} s are too short to tell that it ended"
            )
        sent: float = yield NOW
        timeout = self._timeout if within is None else min(self._timeout, within)
        said: list[str] = yield Call(Renew(claims), timeout)
        return [
            Extension(sent, trust(claim.spec)) if word == "held" else Refusal(word)
            for claim, word in zip(claims, said, strict=True)
        ]

    def release(self, claim: Claim, linger: float = 0.0) -> QueueFlow[bool]:
        held: bool = yield Call(Release(claim, linger), self._timeout)
        return held

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> QueueFlow[list[LockView]]:
        views: list[LockView] = yield Call(Survey(prefix, exact, contended), self._timeout)
        return views

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> QueueFlow[tuple[bool, float]]:
        reply: tuple[bool, float] = yield Call(Allow(name, interval, burst, cost, reserve), self._timeout)
        return reply
