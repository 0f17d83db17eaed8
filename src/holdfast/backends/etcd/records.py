"""Records in etcd (`holdfast.record`).

1. A record is a key; its version is the revision that wrote it last. No clock is needed for it, and none is used twice.
2. Beside a record that is alive stands a key with its owner and ttl, on a lease of its own: it ends by itself unless
   it is touched. `remaining` is the whole ttl for as long as that key is there, because etcd tells at once that it has
   ended, and not how long it still lasts.
3. Both are written in one transaction, with the version that was read as its condition. It is sent once: if its reply
   is lost that is `OutcomeUnknown`, and whoever asked looks what is there. One that names a lease that is gone was
   refused, and is tried again.
4. A touch keeps the lease alive and, in the same write, reads what hangs on it, so that a majority confirms both
   (`session`, rule 6). If the key is gone it is put again, on the condition that the record is what it was.
5. How long a record is kept is its lease's affair (`record_leases`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from ...model import Claim
from ...record import Record, Swapped
from .client_identity import ClientIdentity
from .error_mapping import accepted, succeeded
from .keys import Keys
from .record_leases import RecordLeases, SpareLeases
from .record_values import Alive, alive_of, only, put_alive, put_record, record_of, shown, split
from .rpc import (
    KEEP_ALIVE,
    Answer,
    KeyValue,
    Rejected,
    Replies,
    Rpc,
    absent,
    b64,
    changed_at,
    delete,
    get,
    grant_lease,
    keep_alive,
    revision_of,
    seconds_left,
    txn,
    unb64,
    version_of,
)
from .session import new_session, whole
from .sessions import proven

TRIES_COUNT = 3
TOUCH_COUNT = 50
"""Of one request: etcd takes 128 operations in a transaction, and each has two."""
PAGE_COUNT = 50
MOST_KNOWN_COUNT = 10_000


class EtcdRecords:
    """The records of one coordinator."""

    def __init__(self, identity: ClientIdentity, keys: Keys) -> None:
        self._keys = keys
        self._timeout = identity.request_timeout
        self._leases = RecordLeases(identity.namespace, keys, identity.calendar_us, identity.request_timeout)
        self._spare = SpareLeases()
        self._alive: dict[str, Alive] = {}
        """By key: what was last seen beside it. A touch that finds it so needs one request."""

    def forget(self) -> None:
        """In a forked child."""
        self._alive = {}
        self._leases.forget_all()
        self._spare.forget_all()

    def read(self, key: str) -> Flow[Record | None]:
        look = txn((), self._look(key))
        replies: Replies = yield Call((look,), self._timeout)
        return record_of(key, *accepted(replies[0], "a look")["responses"])

    def _look(self, key: str) -> list[str]:
        return [get(self._keys.record(key)), get(self._keys.alive(key))]

    def swap(self, key: str, expected: int, data: bytes | None, owner: str, ttl: float, keep: float) -> Flow[Swapped]:
        record, alive = self._keys.record(key), self._keys.alive(key)
        same = changed_at(record, expected) if expected else absent(record)
        for _ in range(TRIES_COUNT):
            rpcs: list[Rpc] = []
            ends = [delete(alive)]
            kept = 0
            living: Alive | None = None
            if data is None:
                ends.append(delete(record))
            else:
                kept = yield from self._leases.kept_for(keep)
                if ttl:
                    lease, made = yield from self._lease(ttl)
                    living = Alive(lease, ttl, owner)
                    rpcs.append(made)
                    ends = [put_alive(alive, living)]
                ends.append(put_record(record, owner, data, kept))
            rpcs.append(txn([same], ends, self._look(key)))
            replies: Replies = yield Call(tuple(rpcs), self._timeout)
            reply = replies[-1]
            if isinstance(reply, Rejected) and reply.lease_is_gone:
                self._leases.forget(kept)
                continue
            answer = accepted(reply, f"the record {key!r}")
            if not succeeded(answer):
                if living is not None:
                    yield from self._set_free(living)
                return Swapped(False, record_of(key, *answer["responses"]))
            if (before := self._alive.get(key)) is not None and before.owner == owner:
                yield from self._set_free(before)
            self._remember(key, living)
            if data is None:
                return Swapped(True, None)
            if living is not None and rpcs[0].path == KEEP_ALIVE and not _lives(replies[0], answer):
                try:  # on another lease: this one may be ending
                    yield from self._bring_back(key, owner, ttl, self._timeout)
                except BackendUnavailable:
                    pass  # the record is written; the next touch sees to it
            return Swapped(True, Record(key, revision_of(answer), data, owner, ttl))
        raise BackendUnavailable(f"the leases of the record {key!r} ended before it was written; try again")

    def _lease(self, ttl: float) -> Flow[tuple[int, Rpc]]:
        """A lease on which nothing hangs, and what makes sure that it lives for so long."""
        now: float = yield NOW
        spare = self._spare.take(whole(ttl), now)
        if spare is not None:
            return spare, keep_alive(spare)
        lease = (yield from new_session(ttl, sole=True)).lease
        return lease, grant_lease(lease, whole(ttl))

    def _set_free(self, alive: Alive) -> Flow[None]:
        """Nothing hangs on its lease."""
        now: float = yield NOW
        self._spare.put(whole(alive.ttl), alive.lease, now)

    def _remember(self, key: str, living: Alive | None) -> None:
        if living is None:
            self._alive.pop(key, None)
            return
        if len(self._alive) >= MOST_KNOWN_COUNT:
            self._alive.clear()
        self._alive[key] = living

    # Touching

    def touch(self, claims: Sequence[Claim]) -> Flow[list[bool | None]]:
        timeout = min(self._timeout, min(claim.spec.ttl for claim in claims) / 3)
        said: list[bool | None] = []
        for start in range(0, len(claims), TOUCH_COUNT):
            said += yield from self._touch(claims[start : start + TOUCH_COUNT], timeout)
        return said

    def _touch(self, claims: Sequence[Claim], timeout: float) -> Flow[list[bool | None]]:
        said: list[bool | None] = [None] * len(claims)
        open_numbers = list(range(len(claims)))
        for _ in range(TRIES_COUNT):
            kept, looks = yield from self._keep_alive([claims[number] for number in open_numbers], timeout)
            again = []
            for number, (there, alive) in zip(open_numbers, looks, strict=True):
                claim = claims[number]
                key, owner, ttl = claim.spec.name, claim.owner, claim.spec.ttl
                found = None if alive is None else alive_of(alive)
                if there is None or (found is not None and found.owner != owner):
                    said[number] = False
                elif found is not None and found.ttl == ttl and found.lease in kept:
                    said[number] = True
                else:
                    known = self._alive.get(key)
                    self._remember(key, found)
                    if found is not None and found.ttl == ttl and (known is None or known.lease != found.lease):
                        again.append(number)  # it was not known on which lease
                        continue
                    said[number] = yield from self._bring_back(key, owner, ttl, timeout)
                    if said[number] is None:
                        again.append(number)
            if not again:
                break
            open_numbers = again
        return said

    def _keep_alive(
        self, claims: Sequence[Claim], timeout: float
    ) -> Flow[tuple[set[int], list[tuple[KeyValue | None, KeyValue | None]]]]:
        """Which leases are alive for sure; and for each the record without its data, and the key beside it."""
        names = [claim.spec.name for claim in claims]
        leases = [self._alive[name].lease for name in names if name in self._alive]
        looks = [op for name in names for op in (version_of(self._keys.record(name)), get(self._keys.alive(name)))]
        replies: Replies = yield Call((*map(keep_alive, leases), txn((), looks)), timeout)
        proof = accepted(replies[-1], "a look")
        kept = {lease for lease, reply in zip(leases, replies, strict=False) if _lives(reply, proof)}
        found = [only(each) for each in proof["responses"]]
        yield from self._prolong({int(there.get("lease", 0)) for there in found[::2] if there is not None}, timeout)
        return kept, list(zip(found[::2], found[1::2], strict=True))

    def _prolong(self, leases: set[int], timeout: float) -> Flow[None]:
        """Records that are touched are kept for their whole time from then on."""
        sent: float = yield NOW
        due = [lease for lease in leases if lease and self._leases.is_due(lease, sent)]
        if not due:
            return
        proof_read = txn((), [get(self._keys.root)])
        replies: Replies = yield Call((*map(keep_alive, due), proof_read), timeout)
        for lease, reply in zip(due, replies, strict=False):
            if _lives(reply, replies[-1]) and not isinstance(reply, Rejected):
                self._leases.heard(lease, sent, seconds_left(reply))

    def _bring_back(self, key: str, owner: str, ttl: float, timeout: float) -> Flow[bool | None]:
        """Put the key beside a record of this owner again. None: the record was written meanwhile."""
        record, alive = self._keys.record(key), self._keys.alive(key)
        replies: Replies = yield Call((txn((), [get(record)]),), timeout)
        found = only(accepted(replies[0], "a look")["responses"][0])
        if found is None or split(found)[0] != owner:
            return False
        living = Alive((yield from new_session(ttl, sole=True)).lease, ttl, owner)
        write = txn([changed_at(record, int(found["mod_revision"]))], [put_alive(alive, living)])
        replies = yield Call((grant_lease(living.lease, whole(ttl)), write), timeout)
        if not succeeded(replies[-1]):
            return None
        self._remember(key, living)
        return True

    # Listing

    def list(self, prefix: str, after: str, limit: int) -> Flow[list[Record]]:
        """Page by page, each at one revision."""
        found: list[Record] = []
        begin, end = self._keys.record(max(prefix, after + "\0" if after else "")), self._keys.records_end(prefix)
        while len(found) < limit:
            count = min(PAGE_COUNT, limit - len(found))
            body = f'{{"key":"{begin}","range_end":"{end}","limit":{count}}}'
            replies: Replies = yield Call((Rpc("/v3/kv/range", body),), self._timeout)
            answer = accepted(replies[0], "a list")
            records = answer.get("kvs", [])
            if not records:
                break
            alive = yield from self._alive_between(records, revision_of(answer))
            for each in records:
                key = self._keys.key_of_record(unb64(each["key"]))
                found.append(shown(key, each, alive.get(self._keys.alive(key))))
            if len(records) < count:
                break
            begin = b64(unb64(records[-1]["key"]) + "\0")
        return found

    def _alive_between(self, records: Sequence[KeyValue], revision: int) -> Flow[dict[str, KeyValue]]:
        first, last = (self._keys.key_of_record(unb64(each["key"])) for each in (records[0], records[-1]))
        begin, end = self._keys.alive(first), self._keys.alive(last + "\0")
        body = f'{{"key":"{begin}","range_end":"{end}","revision":{revision}}}'
        replies: Replies = yield Call((Rpc("/v3/kv/range", body),), self._timeout)
        return {each["key"]: each for each in accepted(replies[0], "a list").get("kvs", [])}


def _lives(kept: Answer | Rejected, proof: Answer | Rejected) -> bool:
    return not isinstance(kept, Rejected) and seconds_left(kept) > 0 and proven(kept, proof)
