"""The flows of etcd: a take is one transaction, a release is one, and the end of a claim is the grant of the next.

1. A claim has a key of its own (`keys`), which hangs on its owner's session (`session`) and names its owner: whatever
   reply was lost, the claim is found again, or undone. Its place in the line, and its token, is its create revision.
2. A grant is good from when its session was last kept alive, not from when the take was sent: etcd keeps a key for as
   long as its lease.
3. Nobody grants: who holds follows from the keys (`ordered_keys.queue`). To believe it, a waiter needs two things. That
   the claim before it held and has ended (`ordered_keys.handoff`, `watch`). And that its own claim
   lives: its session was kept alive a ttl ago at most. Else it looks, in one transaction that shows its own claim too.
4. So nobody is granted who is dead or gone: what ends with its session, by an eviction or by a withdrawal is the end of
   a claim like any other; if it had not held, whoever stands behind it looks, and sees who does.
5. Who holds after waiting says so in its value, since when, so that whoever stands behind it knows that its end will be
   the grant. That is told in the background, once the holder has been let in; nobody's safety depends on it.
6. A release is guarded by the create revision: it can end this claim and no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Flow, Wait
from ...model import Claim, Extension, Grant, Promises, Queued, Refusal
from ...record import Record, Swapped
from ..ordered_keys.admin import AdminFlows
from ..ordered_keys.handoff import HANDED
from ..ordered_keys.rates import Rates
from . import end_notes, release, renew
from .acquire import AcquireFlows
from .admin import QueueKeys
from .client_identity import ClientIdentity
from .keys import Keys
from .rates import CounterKeys
from .records import EtcdRecords
from .rpc import Rpc
from .sessions import Sessions
from .watch import Watch


class EtcdBackend:
    """The line as keys."""

    scheme = "etcd"

    def __init__(self, identity: ClientIdentity, cluster: str, promises: Promises, least_ttl: float) -> None:
        self.cluster = cluster
        self.promises = promises
        self.least_ttl = least_ttl
        self._identity = identity
        self._timeout = identity.request_timeout
        self._keys = Keys(identity.namespace)
        self.sessions = Sessions(self._keys)
        self._acquire = AcquireFlows(identity, self._keys, self.sessions)
        self._records = EtcdRecords(identity, self._keys)
        self._counters = CounterKeys(self._keys, identity.calendar_us, identity.request_timeout)
        self.take_all, self.allow = self._acquire.take_all, Rates(self._counters).allow
        admin = AdminFlows(QueueKeys(self._keys, identity.calendar_us, identity.request_timeout))
        self.survey, self.evict, self.ask = admin.survey, admin.evict, admin.ask

    def watch_of(self, owner: str) -> Watch | None:
        state = self.sessions.states.get(owner)
        return None if state is None else state.watch

    def revoke_all(self) -> list[Rpc]:
        """What a client says last: the leases end, and all that hangs on them."""
        return self.sessions.revoke_all()

    def forget(self) -> None:
        """In a forked child."""
        self.sessions.forget()
        self._counters.forget()
        self._records.forget()

    # Asking

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant | Queued | None]:
        outcomes = yield from self._acquire.take_all((claim,), queue, within)
        return None if outcomes is None else outcomes[0]

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        verdict = yield Wait(claim.owner, timeout)
        state = self.sessions.states.get(claim.owner)
        if verdict != HANDED or state is None or state.session.sole or state.session.dead:
            return None
        if state.end_note or state.left:  # one is to be written, or somebody is to be named: a look does both
            return None
        now: float = yield NOW
        if now >= state.session.since + claim.spec.ttl:  # its own claim may be gone by now
            return None
        yield from self._acquire.grants.mark(state)
        return self._acquire.grants.granted(state, state.created, state.created)

    # Keeping

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[list[Extension | Refusal | None]]:
        timeout = min(self._timeout, min(claim.spec.ttl for claim in claims) / 3)
        return renew.renew(self.sessions, self._keys, claims, timeout if within is None else min(timeout, within))

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        return release.release(self._identity, self._keys, self.sessions, claim, linger)

    def recovered(self, claim: Claim) -> Flow[bool]:
        return end_notes.recovered(self.sessions.states.get(claim.owner), claim, self._timeout)

    # Records

    def read_record(self, key: str) -> Flow[Record | None]:
        return self._records.read(key)

    def swap_record(
        self, key: str, expected: int, data: bytes | None, owner: str, ttl: float, keep: float
    ) -> Flow[Swapped]:
        return self._records.swap(key, expected, data, owner, ttl, keep)

    def touch_records(self, claims: Sequence[Claim]) -> Flow[list[bool | None]]:
        return self._records.touch(claims)

    def list_records(self, prefix: str, after: str, limit: int) -> Flow[list[Record]]:
        return self._records.list(prefix, after, limit)

    def guard(self, claim: Claim) -> dict[str, str]:
        """A compare for a transaction of the user's own, in the words of the JSON gateway."""
        state = self.sessions.states.get(claim.owner)
        target = "MOD" if state is not None and state.confirmed else "CREATE"
        return {
            "key": self._keys.claim(claim.spec.name, claim.owner) if state is None else state.key,
            "target": target,
            "result": "EQUAL",
            f"{target.lower()}_revision": str(claim.token),
        }
