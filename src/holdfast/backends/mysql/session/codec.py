"""The statements of session locks, and their replies."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from ....model import Claim
from ...execute import us
from ...queue_backend import Allow, Survey
from ...relational.error_mapping import Refused
from ...relational.records import behind_prefix
from ..codec import Codec, Order, hexed
from ..packets import QueryReply, bound, text_value
from ..recent_names import KEPT_COUNT, RecentNames
from ..short_cuts import NOW, written_if

A_DAY_S = 86_400
IDLE_S = 30
"""For how long (seconds) the server keeps a session that says nothing: a host that vanished says nothing."""

LONGEST_HOST_COUNT = 64
LONGEST_SHORT_NAME_BYTES = 96
"""A name up to this length has room in what others see of a claim, whoever and wherever that is."""
BOUNDS = b"SET SESSION wait_timeout = %d" % IDLE_S

NAME_OF_ROW = b"""IF(LENGTH(r.who) > LENGTH(SUBSTRING_INDEX(r.who, '\n', 5)),
SUBSTRING(r.who, LENGTH(SUBSTRING_INDEX(r.who, '\n', 5)) + 2),
(SELECT n.name FROM holdfast_session_name n WHERE n.hash = r.hash)) AS name"""
SURVEY = b"""SELECT c.name, 1, c.owner, c.token, 1, SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 3), '\n', -1),
SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 4), '\n', -1), c.since,
%(now)b + CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 5), '\n', -1) AS SIGNED), SUBSTRING_INDEX(c.who, '\n', 1),
SUBSTRING_INDEX(SUBSTRING_INDEX(c.who, '\n', 2), '\n', -1), 1, %(now)b FROM (
SELECT NAME_OF_ROW, r.owner, r.mark AS token, r.since, r.who FROM holdfast_session r
WHERE r.connection > 0 AND IS_USED_LOCK(LOWER(HEX(r.hash))) = r.connection
AND (NOT %(contended)b OR r.hash IN (SELECT v.hash FROM holdfast_session_waiter v))
UNION ALL
SELECT NAME_OF_ROW, r.owner, 0, r.since, r.who FROM holdfast_session_waiter r
WHERE IS_USED_LOCK(CONCAT('holdfast-session-', r.connection)) = r.connection
) c WHERE c.name >= %(first)b AND c.name < %(last)b ORDER BY c.name, c.token = 0, c.since"""
SURVEY = SURVEY.replace(b"NAME_OF_ROW", NAME_OF_ROW)


QUICK_TAKE = b"""UPDATE holdfast_session s FORCE INDEX (PRIMARY) SET
s.mark = LAST_INSERT_ID(GREATEST(s.mark + 1, %(now)b)), s.since = %(now)b, s.connection = CONNECTION_ID(), s.owner = ?,
s.who = ? WHERE s.hash = ? AND IF(GREATEST(s.mark + 1, %(now)b) < s.above, GET_LOCK(?, 0), 0) = 1"""
QUICK_TAKE %= {b"now": NOW}
"""The lock is asked for once the row is found and its token may be given, so it is not locked in vain."""

BELOW = b"mark + 1 < VALUES(above)"
QUICK_ENTER = b"""INSERT INTO holdfast_session (owner, who, hash, mark, above, since, connection)
SELECT ?, ?, ?, LAST_INSERT_ID(GREATEST(%(now)b, f.floor)), f.ceiling, %(now)b, CONNECTION_ID()
FROM holdfast_session_floor f
WHERE f.only_row = 1 AND IF(GREATEST(%(now)b, f.floor) < f.ceiling, GET_LOCK(?, 0), 0) = 1
ON DUPLICATE KEY UPDATE %(written)b,
mark = IF(%(below)b, LAST_INSERT_ID(GREATEST(mark + 1, VALUES(mark))), mark + LAST_INSERT_ID(0))"""
QUICK_ENTER %= {b"now": NOW, b"below": BELOW, b"written": written_if(BELOW, "owner who above since connection")}
"""For a name that may be new. The lock may be got, and the token not be given: if the row is there with a mark just
below the ceiling, or the table is full. Then it is let go of first (`LET_GO`)."""

TAKE = b"CALL holdfast_session_take(%b,%b,%d,%d,%d)"
LET_GO = b"BEGIN NOT ATOMIC DO RELEASE_LOCK(%b); %b; END"
"""In one statement with what follows: a take is two statements at most (`SessionClient._release`)."""

QUICK_UNLOCK = b"""UPDATE holdfast_session s FORCE INDEX (PRIMARY) SET s.connection = 0
WHERE s.hash = ? AND RELEASE_LOCK(?) = 1"""
PREPARED = (QUICK_TAKE, QUICK_ENTER, QUICK_UNLOCK)
TABLE_FULL_CODE = 1114
_TAKES, _UNLOCKS = bound("ssss"), bound("ss")


class UserLock(NamedTuple):
    """A user lock (64 characters at most, case ignored: a strong hash) as a literal; hash and lock as values."""

    literal: bytes
    values: bytes


class SessionCodec:
    """Writes orders for one namespace on behalf of one process."""

    def __init__(self, namespace: str, host: str, pid: int, quick: bool = True) -> None:
        self._prefix = f"{namespace}/"
        self._quick = quick
        self._at = f"{host.encode()[:LONGEST_HOST_COUNT].decode('utf-8', 'ignore')}\n{pid}"
        self._lines = Codec(namespace, host, pid)
        self._locks: dict[str, UserLock] = {}
        self._known = RecentNames()
        """Names that have a row, as far as is known."""
        self._called = False
        """As `Codec._called`."""

    def take(self, claim: Claim, queue: bool, seen: bool) -> Order:
        """Take it if it is free: its token, or 0. `seen`: others have seen it waiting."""
        name = claim.spec.name
        lock = self._lock(name)

        def call(let_go: bool) -> Order:
            text = TAKE % (*self._of(claim), 0, queue, seen)
            return Order(LET_GO % (lock.literal, text) if let_go else text, called)

        def called(reply: QueryReply) -> int:
            self._called = True
            return self._noted(name, _number(reply))

        def read(reply: QueryReply) -> int | Order:
            return self._noted(name, reply.made) if reply.made else call(let_go=reply.changed > 0)

        def refused(error: Refused) -> Order | None:
            return call(let_go=True) if error.code == TABLE_FULL_CODE else None

        who, long_name = self._who(claim)
        known = name in self._known
        if seen or not self._quick or not self._called or (long_name and not known):
            return call(let_go=False)
        values = _TAKES + text_value(claim.owner.encode()) + text_value(who) + lock.values
        return Order(QUICK_TAKE if known else QUICK_ENTER, read, values, refused)

    def _noted(self, name: str, token: int) -> int:
        if token:
            self._known.add(name)
        return token

    def wait(self, claim: Claim) -> Order:
        """In the server's own line, for a day."""
        return Order(TAKE % (*self._of(claim), A_DAY_S, False, True), _number)

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
        call = Order(b"SELECT RELEASE_LOCK(%b)" % lock.literal, lambda reply: reply.rows[0][0] == b"1")
        if not self._quick:
            return call
        return Order(QUICK_UNLOCK, lambda reply: True if reply.changed else call, _UNLOCKS + lock.values)

    def alive(self) -> Order:
        return Order(b"DO 0", _nothing)

    def give_up(self, session: int) -> Order:
        """Out of the server's line, said on another connection."""
        return Order(b"KILL QUERY %d" % session, _nothing)

    def write(self, request: Survey | Allow) -> Order:
        if isinstance(request, Allow):
            return self._lines.write(request)
        prefix = self._prefix + request.prefix
        first, last = hexed(prefix), hexed(behind_prefix(prefix))
        return Order(
            SURVEY % {b"now": NOW, b"first": first, b"last": last, b"contended": b"%d" % request.contended},
            self._lines.views,
        )

    def tidy(self, most: int) -> Order:
        return self._lines.tidy(most)

    def _of(self, claim: Claim) -> tuple[bytes, bytes]:
        """Which lock (user lock, hash, and its name if that is long), and for whom."""
        lock, (who, long_name) = self._lock(claim.spec.name), self._who(claim)
        which = b"%b,x'%b',x'%b'" % (lock.literal, lock.literal[1:-1], long_name.hex().encode())
        return which, b"%b,x'%b'" % (hexed(claim.owner), who.hex().encode())

    def _who(self, claim: Claim) -> tuple[bytes, bytes]:
        """What others see of a claim, its name included if that is short; else the name, beside it."""
        who = f"{claim.actor}\n{claim.spec.mode}\n{self._at}\n{us(claim.spec.ttl)}".encode()
        name = (self._prefix + claim.spec.name).encode()
        return (b"%b\n%b" % (who, name), b"") if len(name) <= LONGEST_SHORT_NAME_BYTES else (who, name)

    def _lock(self, name: str) -> UserLock:
        if (kept := self._locks.get(name)) is None:
            digest = hashlib.sha256((self._prefix + name).encode())
            text = digest.hexdigest().encode()
            kept = UserLock(b"'%b'" % text, text_value(digest.digest()) + text_value(text))
            if len(self._locks) >= KEPT_COUNT:
                self._locks.clear()
            self._locks[name] = kept
        return kept


def _number(reply: QueryReply) -> int:
    return int(reply.rows[0][0] or 0)


def _nothing(reply: QueryReply) -> Any:
    return True
