"""Fences: the check at the resource, which refuses a holder that comes back too late.

1. A fence keeps a mark per resource: the highest token that has claimed it. The mark only rises.
2. Claim before you read. `claim` raises the mark iff token ≥ mark; from then on no older holder can write, so
   what is read next stays true until a newer holder claims.
3. A write is atomic with token == mark. A check on write alone is not a fence: a stale write that lands
   between the new holder's read and its first write is accepted, and lost.
4. Whoever is refused gets `FenceRejected`; nothing is changed, it is counted (`rejects`) and logged.
5. Fences take the user's own connection and are synchronous. They look at tokens only: not at clocks, and not
   at whether a lease is still alive.

Each grant of a semaphore or of a read lock has a token of its own, so only its newest holder passes a fence:
put fences behind exclusive grants (`lock`, `reentrant`, `rwlock(…).write()`, `election`).
"""

from .file import FencedFile, FileClaim
from .holder import Holder
from .rejections import rejects
from .sqlite import SQLiteFence

__all__ = ["FencedFile", "FileClaim", "Holder", "SQLiteFence", "rejects"]
