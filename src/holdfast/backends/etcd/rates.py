"""The limiter's numbers on an engine without a clock: by the callers' calendars (`ordered_keys.rates`).

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

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from ..ordered_keys.rates import SECOND_US, Counter
from .keys import Keys
from .rpc import OpResponse, Rejected, Replies, Rpc, changed_at, get, grant_lease, put, revision_of, txn, unb64
from .session import new_session, whole

MARGIN_S = 60.0
MOST_KNOWN_COUNT = 10_000


class CounterKeys:
    """Implements `ordered_keys.rates.CounterStore`: knows what was last seen, so that mostly one request is enough."""

    def __init__(self, keys: Keys, calendar_us: Callable[[], int], timeout: float) -> None:
        self._keys, self._calendar_us, self._timeout = keys, calendar_us, timeout
        self._known: dict[str, tuple[Counter, float]] = {}
        """By name: what was last seen, and when it was here that this was first known."""
        self._leases: dict[int, tuple[int, float]] = {}
        """By the power of two of their seconds: id, and until when they are good for that long."""

    def read(self, name: str) -> Flow[Counter]:
        began: float = yield NOW
        last, known_at = self._known.get(name, (Counter(0, 0, 0), began))
        now_us = max(self._calendar_us(), last.now_us + int((began - known_at) * SECOND_US))
        return Counter(last.tat_us, now_us, last.version)

    def swap(self, name: str, seen: Counter, tat_us: int | None) -> Flow[bool]:
        key = self._keys.rate(name)
        rpcs: list[Rpc] = []
        puts: list[str] = []  # where there is nothing to write: is it still so?
        if tat_us is not None:
            rpcs, lease = yield from self._lease(max(0, tat_us - seen.now_us) / SECOND_US)
            puts = [put(key, f"{tat_us} {seen.now_us}", lease)]
        rpcs.append(txn([changed_at(key, seen.version)], puts, [get(key)]))
        replies: Replies = yield Call(tuple(rpcs), self._timeout)
        reply = replies[-1]
        if isinstance(reply, Rejected):
            if not reply.lease_is_gone:
                raise BackendUnavailable(f"etcd refused to count {name!r}: {reply.message}")
            self._leases.clear()
            return False
        done = bool(reply.get("succeeded"))
        if not done or tat_us is not None:
            if len(self._known) >= MOST_KNOWN_COUNT:
                self._known.clear()
            known = _read(reply["responses"][0]) if not done else Counter(tat_us or 0, seen.now_us, revision_of(reply))
            self._known[name] = known, (yield NOW)
        return done

    def _lease(self, span_s: float) -> Flow[tuple[list[Rpc], int]]:
        """A lease that is good for as long as the count matters, and what makes it, if there is none yet."""
        now: float = yield NOW
        power = whole(span_s + MARGIN_S).bit_length()
        lease, until = self._leases.get(power, (0, 0.0))
        if now < until:
            return [], lease
        seconds = 2 << power
        session = yield from new_session(seconds, sole=True)
        self._leases[power] = (session.lease, now + seconds / 4)
        return [grant_lease(session.lease, seconds)], session.lease

    def forget(self) -> None:
        """In a forked child."""
        self._known, self._leases = {}, {}


def _read(response: OpResponse) -> Counter:
    kvs = response["response_range"].get("kvs")
    if not kvs:
        return Counter(0, 0, 0)
    tat, latest = unb64(kvs[0]["value"]).split()
    return Counter(int(tat), int(latest), int(kvs[0]["mod_revision"]))
