"""The statements of session locks, and their replies."""

from __future__ import annotations

import hashlib
from typing import Any

from ....model import Claim
from ...execute import us
from ...queue_backend import Allow, Survey
from ..codec import KEPT_COUNT, LAST, NOW, Codec, Order, hexed
from ..packets import QueryReply, bound, text_value

A_DAY_S = 86_400
IDLE_S = 30
"""For how long (seconds) the server keeps a session that says nothing: a host that vanished says nothing."""

LONGEST_HOST_COUNT = 64
BOUNDS = b"SET SESSION wait_timeout = %d" % IDLE_S

SURVEY = b"""SELECT c.name, 1, c.owner, c.token, 1, SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 3), '\n', -1),
SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 4), '\n', -1), c.since,
%(now)b + CAST(SUBSTRING_INDEX(c.who, '\n', -1) AS SIGNED), SUBSTRING_INDEX(c.who, '\n', 1),
SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 2), '\n', -1), 1, %(now)b FROM (
SELECT n.name, s.owner, s.mark AS token, s.since, s.who
FROM holdfast_session_name n JOIN holdfast_session s ON s.hash = n.hash
WHERE n.name >= %(first)b AND n.name < %(last)b AND IS_USED_LOCK(LOWER(HEX(s.hash))) = s.connection
AND (NOT %(contended)b OR s.hash IN (SELECT v.hash FROM holdfast_session_waiter v))
UNION ALL
SELECT n.name, w.owner, 0, w.since, w.who
FROM holdfast_session_name n JOIN holdfast_session_waiter w ON w.hash = n.hash
WHERE n.name >= %(first)b AND n.name < %(last)b
AND IS_USED_LOCK(CONCAT('holdfast-session-', w.connection)) = w.connection
) c ORDER BY c.name, c.token = 0, c.since"""


QUICK_TAKE = b"""UPDATE holdfast_session s FORCE INDEX (PRIMARY) SET
s.mark = LAST_INSERT_ID(GREATEST(s.mark + 1, %(now)b)), s.since = %(now)b, s.connection = CONNECTION_ID(), s.owner = ?,
s.who = ? WHERE s.hash = ? AND IF(GREATEST(s.mark + 1, %(now)b) < s.above, GET_LOCK(?, 0), 0) = 1"""
QUICK_TAKE %= {b"now": NOW}
"""The lock is asked for once the row is found and its token may be given, so it is not locked in vain."""

QUICK_UNLOCK = b"""UPDATE holdfast_session s FORCE INDEX (PRIMARY) SET s.connection = 0
WHERE s.hash = ? AND RELEASE_LOCK(?) = 1"""
PREPARED = (QUICK_TAKE, QUICK_UNLOCK)
_TAKES, _UNLOCKS = bound("ssss"), bound("ss")


class SessionCodec:
    """Writes orders for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int, quick: bool = True) -> None:
        self._prefix = f"{namespace}/"
        self._quick = quick
        self._at = f"{host.encode()[:LONGEST_HOST_COUNT].decode('utf-8', 'ignore')}\n{pid}"
        self._lines = Codec(namespace, host, pid)
        self._locks: dict[str, tuple[bytes, bytes, bytes, bytes]] = {}

    def take(self, claim: Claim, queue: bool, seen: bool) -> Order:
        """Take it if it is free: its token, or 0. `seen`: others have seen it waiting."""

        def call() -> Order:
            return Order(b"CALL holdfast_session_take(%b,%b,0,%d,%d)" % (*self._of(claim), queue, seen), _number)

        if seen or not self._quick:
            return call()
        values = text_value(claim.owner.encode()), text_value(self._who(claim)), self._lock(claim.spec.name)[3]
        return Order(QUICK_TAKE, lambda reply: reply.made if reply.changed else call(), _TAKES + b"".join(values))

    def wait(self, claim: Claim) -> Order:
        """In the server's own line, for a day."""
        return Order(b"CALL holdfast_session_take(%b,%b,%d,0,1)" % (*self._of(claim), A_DAY_S), _number)

    def queue(self, claim: Claim) -> Order:
        """Be seen waiting."""
        lock, who = self._of(claim)
        return Order(b"CALL holdfast_session_queue(%b,%b)" % (lock.partition(b",")[2], who), _nothing)

    def leave(self, owner: str) -> Order:
        """No longer seen waiting."""
        return Order(b"DELETE FROM holdfast_session_waiter WHERE owner = %b" % hexed(owner), _nothing)

    def unlock(self, name: str) -> Order:
        """Whether this session held it."""
        lock = self._lock(name)
        call = Order(b"SELECT RELEASE_LOCK(%b)" % lock[0], lambda reply: reply.rows[0][0] == b"1")
        if not self._quick:
            return call
        return Order(QUICK_UNLOCK, lambda reply: True if reply.changed else call, _UNLOCKS + lock[3])

    def alive(self) -> Order:
        return Order(b"DO 0", _nothing)

    def give_up(self, session: int) -> Order:
        """Out of the server's line, said on another connection."""
        return Order(b"KILL QUERY %d" % session, _nothing)

    def write(self, request: Survey | Allow) -> Order:
        if isinstance(request, Allow):
            return self._lines.write(request)
        first, last = hexed(self._prefix + request.prefix), hexed(self._prefix + request.prefix + LAST)
        return Order(
            SURVEY % {b"now": NOW, b"first": first, b"last": last, b"contended": b"%d" % request.contended},
            self._lines.views,
        )

    def tidy(self, most: int) -> Order:
        return self._lines.tidy(most)

    def _of(self, claim: Claim) -> tuple[bytes, bytes]:
        """Which lock (user lock, hash, name), and for whom."""
        lock, owner = self._lock(claim.spec.name), hexed(claim.owner)
        return b"%b,%b,%b" % lock[:3], b"%b,x'%b'" % (owner, self._who(claim).hex().encode())

    def _who(self, claim: Claim) -> bytes:
        return f"{claim.actor}\n{claim.spec.mode}\n{self._at}\n{us(claim.spec.ttl)}".encode()

    def _lock(self, name: str) -> tuple[bytes, bytes, bytes, bytes]:
        """A user lock (64 characters at most, case ignored: a strong hash), hash and name; the first two as values."""
        if (kept := self._locks.get(name)) is None:
            whole = self._prefix + name
            digest = hashlib.sha256(whole.encode())
            name_of_lock = digest.hexdigest().encode()
            values = text_value(digest.digest()) + text_value(name_of_lock)
            kept = b"'%b'" % name_of_lock, b"x'%b'" % name_of_lock, hexed(whole), values
            if len(self._locks) >= KEPT_COUNT:
                self._locks.clear()
            self._locks[name] = kept
        return kept


def _number(reply: QueryReply) -> int:
    return int(reply.rows[0][0] or 0)


def _nothing(reply: QueryReply) -> Any:
    return True
