"""The statements of the lock table that are prepared: the usual takes and the usual release, one committed row each.

1. `QUICK_TAKE` is for a name whose note the client expects to know (`recent_names`): the note is one of its values, and
   nothing is granted if there is another one. So a grant tells its predecessor without a row, which an UPDATE cannot
   give. `QUICK_ENTER` serves any name, new ones as well, for a little more: it answers with one row, the token (0: not
   granted) and the note.
2. Both take the same values, in the same order. Whatever they do not grant, a procedure decides (`schema/take.sql`).
"""

from __future__ import annotations

from .packets import bound

NOW = b"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

QUICK_TAKE = b"""UPDATE holdfast_claim c SET c.token = GREATEST(c.mark + 1, %(now)b),
c.mark = LAST_INSERT_ID(GREATEST(c.mark + 1, %(now)b)), c.owner = ?, c.weight = ?, c.capacity = ?, c.fair = ?,
c.ttl = ?, c.patience = ?, c.delay = ?, c.robust = ?, c.expires = %(now)b + ?, c.since = %(now)b, c.evicted = false,
c.wake = 0, c.actor = ?, c.mode = ?, c.host = ?, c.pid = ?
WHERE c.name = ? AND c.place = 0 AND c.owner IS NULL AND NOT c.crowded AND c.note = ?"""
QUICK_TAKE %= {b"now": NOW}
QUICK_RELEASE = (
    b"""UPDATE holdfast_claim c SET c.note = IF(c.unrecovered, c.note, CONCAT('released:', c.token, ':', c.owner)),
c.owner = NULL, c.token = 0 WHERE c.name = ? AND c.place = 0
AND c.owner = ? AND c.token > 0 AND c.expires > %b AND NOT c.evicted AND NOT c.crowded"""
    % NOW
)


def written_if(condition: bytes, columns: str) -> bytes:
    """For a row that is there already: these columns as they were to be inserted, on one condition."""
    names = [column.encode() for column in columns.split()]
    return b", ".join(b"%b = IF(%b, VALUES(%b), %b)" % (name, condition, name, name) for name in names)


FREE = b"owner IS NULL AND NOT crowded"
QUICK_ENTER = b"""INSERT INTO holdfast_claim (owner, weight, capacity, fair, ttl, patience, delay, robust, expires,
actor, mode, host, pid, name, place, since, evicted, wake, token, mark)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, %(now)b + ?, ?, ?, ?, ?, ?, 0, %(now)b, false, 0, %(now)b, LAST_INSERT_ID(%(now)b))
ON DUPLICATE KEY UPDATE
mark = IF(%(free)b, LAST_INSERT_ID(GREATEST(mark + 1, VALUES(mark))), mark + LAST_INSERT_ID(0)),
token = IF(%(free)b, mark, token), %(written)b
RETURNING CONCAT(LAST_INSERT_ID(), ',', COALESCE(note, '')) AS granted"""
"""Columns are written in this order: the owner last, because it tells whether the seat was free."""
COLUMNS = "weight capacity fair ttl patience delay robust expires actor mode host pid since evicted wake owner"
QUICK_ENTER %= {b"now": NOW, b"free": FREE, b"written": written_if(FREE, COLUMNS)}

PREPARED = (QUICK_TAKE, QUICK_ENTER, QUICK_RELEASE)
ENTER_VALUES, TAKE_VALUES, RELEASE_VALUES = bound("siiiiiiiisssis"), bound("siiiiiiiisssiss"), bound("ss")
