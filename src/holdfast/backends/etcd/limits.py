"""The limiter on an engine without a clock: GCRA (`_core.gcra`) by the callers' calendars, compared and swapped.

etcd tells no time, so the moment is that of the caller's calendar, and never earlier than the latest that was used for
this name before: time does not go back, whoever asks. Nor does it stand still: what was written at the latest moment
was seen here some time ago, by a clock that no calendar moves, so at least that long has passed since. A caller whose
calendar is ahead by d gets what would have come free within d at once: over any span the count exceeds the rate by what
d is worth, once; everybody else goes on at the rate. Keep the machines' clocks together (NTP), or limit at an engine
with a clock.

The key hangs on a lease that outlives what it says, so no name stays behind.
"""

from __future__ import annotations

from collections.abc import Callable

from ..._core import backoff, gcra
from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from .keys import Keys
from .rpc import OpResponse, Rejected, Replies, Rpc, changed_at, get, grant_lease, put, revision_of, txn, unb64
from .session import new_session, whole

SECOND = 1_000_000
TRIES = 100
MARGIN = 60.0
MOST_KNOWN = 10_000


class Rates:
    """What was last seen of each limiter, so that mostly one request is enough."""

    def __init__(self, keys: Keys, calendar_us: Callable[[], int], timeout: float) -> None:
        self._keys = keys
        self._calendar_us = calendar_us
        self._timeout = timeout
        self._known: dict[str, tuple[int, int, int, float]] = {}
        """By name: mod revision, tat, the latest moment, and when it was here that this was first known."""
        self._leases: dict[int, tuple[int, float]] = {}
        """By the power of two of their seconds: id, and until when they are good for that long."""

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> Flow[tuple[bool, float]]:
        key = self._keys.rate(name)
        for attempt in range(TRIES):
            began: float = yield NOW
            changed, tat, latest, seen = self._known.get(name, (0, 0, 0, began))
            now = max(self._calendar_us(), latest + int((began - seen) * SECOND))
            ok, wait, after = gcra.allow(
                tat, now, int(interval * SECOND), burst, cost, int(min(reserve, 10**9) * SECOND)
            )
            rpcs, lease = yield from self._lease(max(0, after - now) / SECOND)
            if ok:
                rpcs.append(txn([changed_at(key, changed)], [put(key, f"{after} {now}", lease)], [get(key)]))
            else:  # nothing to write: is it still so?
                rpcs.append(txn([changed_at(key, changed)], [], [get(key)]))
            replies: Replies = yield Call(tuple(rpcs), self._timeout)
            reply = replies[-1]
            if isinstance(reply, Rejected):
                if not reply.lease_is_gone:
                    raise BackendUnavailable(f"etcd refused to count {name!r}: {reply.message}")
                self._leases.clear()
                continue
            if reply.get("succeeded"):
                if ok:
                    self._remember(name, (revision_of(reply), after, now, (yield NOW)))
                return ok, wait / SECOND
            self._remember(name, (*_read(reply["responses"][0]), (yield NOW)))
            if attempt > 1:
                yield from backoff.pause(attempt, base=0.001, cap=0.05)
        raise BackendUnavailable(f"{name!r} is counted by too many at once; try again")

    def _remember(self, name: str, seen: tuple[int, int, int, float]) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[name] = seen

    def _lease(self, span: float) -> Flow[tuple[list[Rpc], int]]:
        """A lease that is good for as long as the count matters, and what makes it, if there is none yet."""
        now: float = yield NOW
        power = whole(span + MARGIN).bit_length()
        lease, until = self._leases.get(power, (0, 0.0))
        if now < until:
            return [], lease
        seconds = 2 << power
        session = yield from new_session(seconds, sole=True)
        self._leases[power] = (session.lease, now + seconds / 4)
        return [grant_lease(session.lease, seconds)], session.lease

    def forget(self) -> None:
        self._known, self._leases = {}, {}


def _read(response: OpResponse) -> tuple[int, int, int]:
    kvs = response["response_range"].get("kvs")
    if not kvs:
        return 0, 0, 0
    tat, latest = unb64(kvs[0]["value"]).split()
    return int(kvs[0]["mod_revision"]), int(tat), int(latest)
