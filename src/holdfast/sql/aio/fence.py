"""The fence on the user's own connection: claim before you read, in the transaction of the rows.

1. The claim is the first statement of the transaction. It locks the resource's row in `holdfast_fence` until the
   transaction ends, so a newer holder's claim waits for it, and everything in the transaction is covered. Without a
   transaction (autocommit), or behind a snapshot that is older than the last claim, it would cover nothing, and is
   refused: the server is asked at each claim, whatever the connection was when the fence was made.
2. The mark stands or falls with the transaction. A refused claim changes nothing, and the transaction stays usable.
3. SQLite has a fence of its own (`holdfast.fenced.SQLiteFence`), with the same table; a connection of sqlite3 is handed
   over to it.
4. A refusal is kept though the transaction is rolled back (`fence_refusal`).
"""

from __future__ import annotations

from typing import Any

from ..._core.pickling import unpicklable
from ...fenced.clients import FENCE_ELSEWHERE
from ...fenced.holder import Holder, token_of
from ...fenced.refusal import owner_of, refusal_now
from ...fenced.rejections import rejected
from ...model import check_name
from .refusal_write import keep_refusal
from .runner import adapter_for, raise_mark


class Fence:
    """A fence on an asyncio connection of psycopg, SQLAlchemy, asyncmy or aiosqlite."""

    __slots__ = ("_adapter", "_connection")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._adapter = adapter_for(connection)

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    async def claim(self, resource: str, lease: Holder) -> None:
        """Raise the mark of `resource` to the lease's token, or raise `FenceRejected` if it is beyond."""
        check_name(resource, "resource")
        token = token_of(lease)
        mark = await raise_mark(self._connection, self._adapter, resource, lease)
        if mark != token:
            await keep_refusal(self._connection, self._adapter, resource, refusal_now(token, mark, owner_of(lease)))
            raise rejected(self._adapter.dialect, resource, token, mark)
