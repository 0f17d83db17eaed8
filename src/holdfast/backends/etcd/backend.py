"""The flows of etcd: a take is one transaction, a release is one, and the end of a claim is the grant of the next.

1. A claim has a key of its own (`keys`), which hangs on its owner's session (`session`) and names its owner: whatever
   reply was lost, the claim is found again, or undone. Its place in the line, and its token, is its create revision.
2. A grant is good from when its session was last kept alive, not from when the take was sent: etcd keeps a key for as
   long as its lease.
3. Nobody grants: who holds follows from the keys (`places`). To believe it, a waiter needs two things. That the claim
   before it held and has ended (`watch`): then nobody is before it, and nobody comes in before. And that its own claim
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
from ...model import Claim, Extension, Grant, LockView, Promises, Queued, Refusal
from . import keeping, limits, looking, releasing
from .granting import Here
from .keys import Keys
from .rpc import Rpc
from .sessions import Sessions
from .taking import Taking
from .watch import HANDED, Watch


class EtcdBackend:
    """The line as keys."""

    scheme = "etcd"

    def __init__(self, here: Here, cluster: str, promises: Promises, least_ttl: float) -> None:
        self.cluster = cluster
        self.promises = promises
        self.least_ttl = least_ttl
        self._here = here
        self._timeout = here.request_timeout
        self._keys = Keys(here.namespace)
        self.sessions = Sessions(self._keys)
        self._taking = Taking(here, self._keys, self.sessions)
        self._rates = limits.Rates(self._keys, here.calendar_us, here.request_timeout)

    def watch_of(self, owner: str) -> Watch | None:
        standing = self.sessions.standings.get(owner)
        return None if standing is None else standing.watch

    def revoke_all(self) -> list[Rpc]:
        """What a client says last: the leases end, and all that hangs on them."""
        return self.sessions.revoke_all()

    def forget(self) -> None:
        """In a forked child."""
        self.sessions.forget()
        self._rates.forget()

    # Asking

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant | Queued | None]:
        outcomes = yield from self._taking.take_all((claim,), queue, within)
        return None if outcomes is None else outcomes[0]

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> Flow[list[Grant | Queued] | None]:
        return self._taking.take_all(claims, queue, within)

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        verdict = yield Wait(claim.owner, timeout)
        standing = self.sessions.standings.get(claim.owner)
        if verdict != HANDED or standing is None or standing.session.sole or standing.session.dead:
            return None
        now: float = yield NOW
        if now >= standing.session.since + claim.spec.ttl:  # its own claim may be gone by now
            return None
        yield from self._taking.granting.mark(standing)
        return self._taking.granting.granted(standing, standing.created, standing.created)

    # Keeping

    def renew(self, claims: Sequence[Claim], within: float | None = None) -> Flow[list[Extension | Refusal | None]]:
        timeout = min(self._timeout, min(claim.spec.ttl for claim in claims) / 3)
        return keeping.renew(self.sessions, self._keys, claims, timeout if within is None else min(timeout, within))

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        return releasing.release(self._here, self._keys, self.sessions, claim, linger)

    # Looking after them

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> Flow[list[LockView]]:
        return looking.survey(self._keys, prefix, exact, contended, self._here.calendar_us, self._timeout)

    def evict(self, name: str, token: int) -> Flow[bool]:
        return looking.evict(self._keys, name, token, self._timeout)

    def ask(self, name: str, token: int | None) -> Flow[int]:
        return looking.ask(self._keys, name, token, self._timeout)

    def guard(self, claim: Claim) -> dict[str, str]:
        """A compare for a transaction of the user's own, in the words of the JSON gateway."""
        standing = self.sessions.standings.get(claim.owner)
        target = "MOD" if standing is not None and standing.confirmed else "CREATE"
        return {
            "key": self._keys.claim(claim.spec.name, claim.owner) if standing is None else standing.key,
            "target": target,
            "result": "EQUAL",
            f"{target.lower()}_revision": str(claim.token),
        }

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> Flow[tuple[bool, float]]:
        return self._rates.allow(name, interval, burst, cost, reserve)
