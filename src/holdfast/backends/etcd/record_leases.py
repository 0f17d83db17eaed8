"""The leases of records: how long they are kept, and for how long somebody stands behind them.

How long etcd keeps records: on leases that many of them share, of this process and of all others.

1. Whoever writes a record that is to be kept for so long, in the same span of the calendar (a 64th of that time), hangs
   it on the same lease: its id follows from these. So a million records have some 70 leases, and no lease has so many
   keys that etcd stands still when it ends.
2. A lease lives for two spans longer than what hangs on it, and is used for one. Who comes upon a lease that another
   process has made keeps it alive once: calendars may differ. So a record is kept for its time, and for little more.
3. A keep-alive counts once a majority has confirmed what was asked behind it, in the same term (`session`, rule 6).

Who stands behind a record does so on a lease of its own. One on which nothing hangs any more, or for which the record
was refused, serves the next one (`SpareLeases`): whoever only finds a result, a thousand times, makes no lease.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from .error_mapping import accepted
from .keys import Keys
from .rpc import Rejected, Replies, grant_lease, keep_alive, linearizable_read, seconds_left
from .session import whole
from .sessions import proven

SPAN_RATIO = 64
LEAST_SPAN_S = 2
LONGEST_S = 9_000_000_000
"""etcd's longest lease."""
TRIES_COUNT = 3
MOST_KNOWN_COUNT = 10_000
MOST_SPARE_COUNT = 32
SECOND_US = 1_000_000


class RecordLeases:
    """What one coordinator knows of them."""

    def __init__(self, namespace: str, keys: Keys, calendar_us: Callable[[], int], timeout: float) -> None:
        self._namespace, self._keys, self._calendar_us, self._timeout = namespace, keys, calendar_us, timeout
        self._good_until: dict[int, float] = {}
        """By lease: until then what hangs on it is kept for its time from now on."""

    def kept_for(self, keep_s: float) -> Flow[int]:
        """A lease on which a record is kept for so long."""
        seconds = whole(keep_s)
        span = max(LEAST_SPAN_S, seconds // SPAN_RATIO)
        number = self._calendar_us() // (span * SECOND_US)
        lease = _lease_of(f"{self._namespace}\0{seconds}\0{number}")
        now: float = yield NOW
        for _ in range(TRIES_COUNT):
            if now < self._good_until.get(lease, now):
                return lease
            replies: Replies = yield Call((grant_lease(lease, min(seconds + 2 * span, LONGEST_S)),), self._timeout)
            reply = replies[0]
            if not isinstance(reply, Rejected):
                self._remember(lease, now + span)
            elif reply.lease_exists:
                yield from self._keep_alive(lease, now, span)
            else:
                raise BackendUnavailable(f"etcd granted no lease: {reply.message}")
        raise BackendUnavailable("etcd does not say whether the lease of a record lives; try again")

    def _keep_alive(self, lease: int, now: float, span: float) -> Flow[None]:
        replies: Replies = yield Call((keep_alive(lease), linearizable_read(self._keys.root)), self._timeout)
        kept, proof = accepted(replies[0], "a keep-alive"), replies[1]
        if seconds_left(kept) > 0 and proven(kept, proof):
            self._remember(lease, now + span)

    def is_due(self, lease: int, now: float) -> bool:
        """Whether a touch has to keep it alive."""
        return now >= self._good_until.get(lease, now)

    def heard(self, lease: int, sent: float, seconds: int) -> None:
        """It was kept alive, for so many seconds."""
        self._remember(lease, sent + max(1.0, seconds / (SPAN_RATIO + 2)))

    def _remember(self, lease: int, good_until: float) -> None:
        if len(self._good_until) >= MOST_KNOWN_COUNT:
            self._good_until.clear()
        self._good_until[lease] = good_until

    def forget(self, lease: int) -> None:
        """It is gone."""
        self._good_until.pop(lease, None)

    def forget_all(self) -> None:
        """In a forked child."""
        self._good_until = {}


class SpareLeases:
    """Leases of one coordinator on which nothing hangs, by their seconds. What is not used ends by itself."""

    def __init__(self) -> None:
        self._spare: dict[int, list[tuple[int, float]]] = {}

    def take(self, seconds: int, now: float) -> int | None:
        """One that most likely lives: whoever takes it keeps it alive, and sees."""
        spare = self._spare.get(seconds, [])
        while spare:
            lease, since = spare.pop()
            if now - since < seconds / 2:
                return lease
        return None

    def put(self, seconds: int, lease: int, since: float) -> None:
        """It was alive at that time."""
        spare = self._spare.setdefault(seconds, [])
        if len(spare) < MOST_SPARE_COUNT:
            spare.append((lease, since))

    def forget_all(self) -> None:
        """In a forked child: these are the parent's."""
        self._spare = {}


def _lease_of(words: str) -> int:
    return 1 + (int.from_bytes(sha256(words.encode()).digest()[:8]) >> 2)
