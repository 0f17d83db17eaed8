"""Once in the user's own transaction, for asyncio connections: the rules are in `once_statements`."""

from __future__ import annotations

from types import EllipsisType, TracebackType
from typing import Any

from ..._core.pickling import unpicklable
from ...errors import Misconfigured
from ...recipes.once_record import MAX_RESULT_BYTES, ResultCodec, encoded, fingerprint_of
from .. import once_statements
from ..once_key import OnceKey
from ..once_options import SqlOncePlan, plan_sql_once
from .runner import adapter_for, run


class TransactionOnce:
    """Attempts by key on an asyncio connection of psycopg, SQLAlchemy, asyncmy or aiosqlite.

    The record is written in the transaction of the effect: both are there after its commit, or neither is. Nothing is
    committed here.

        payments = Once(connection, "payments", keep="24h")
        async with payments.attempt("order-7", fingerprint={"amount": 100}) as attempt:
            if not attempt.done:
                await connection.execute("UPDATE accounts SET balance = balance - 100 WHERE id = 7")
                await attempt.complete({"charged": 100})
        await connection.commit()
    """

    __reduce__ = unpicklable("make it there, with the same name")

    def __init__(
        self,
        connection: Any,
        name: str,
        *,
        keep: float | str,
        wait: float | None = None,
        codec: ResultCodec | None = None,
        max_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        self._connection = connection
        self._adapter = adapter_for(connection)
        self._plan = plan_sql_once(name, keep, wait, codec, max_bytes)
        self._open: set[str] = set()

    @property
    def name(self) -> str:
        """What its keys belong to."""
        return self._plan.name

    def attempt(
        self, key: str, *, fingerprint: object = ..., wait: float | EllipsisType | None = ...
    ) -> TransactionAttempt:
        """An attempt, to be entered by `async with`, in a transaction.

        `fingerprint` is the payload, or the part of it that must not change (None is one, too): the same key with
        another one is `PayloadMismatch`; who gives none does not compare. If another transaction has begun the key, it
        is waited for, until it ends or `wait` seconds are over (`AttemptInProgress`); None: for as long as the database
        is set to.
        """
        plan = self._plan
        limit = plan.wait_of(wait, key)
        known = OnceKey(
            self._adapter.dialect, plan.name, plan.key_of(key), fingerprint_of(fingerprint, f"{key!r}"), plan.keep
        )
        return TransactionAttempt(self, known, limit)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class TransactionAttempt:
    """One attempt at the work of a key. Look at `done` first; if it is not, do the work and `complete` it."""

    __reduce__ = unpicklable("hand on its key")

    def __init__(self, once: TransactionOnce, key: OnceKey, wait: float | None) -> None:
        self._once = once
        self._plan: SqlOncePlan = once._plan
        self._key = key
        self._wait = wait
        self._result: bytes | None = None
        self._running = self._opened = self._entered = self._abandoned = False

    @property
    def key(self) -> str:
        """What it is an attempt at."""
        return self._key.key

    @property
    def done(self) -> bool:
        """Whether there is a result, of this attempt or of one before it."""
        return self._result is not None

    @property
    def result(self) -> Any:
        """The result, decoded; raises `Misconfigured` if there is none yet."""
        if self._result is None:
            raise Misconfigured(f"{self!r} has no result yet; look at `done` first, and `complete` it")
        return self._plan.codec.decode(self._result)

    async def complete(self, result: object = None) -> None:
        """Write the result, in this transaction; it stands once that is committed."""
        if not self._running or self.done:
            state = "is done" if self.done else "has not begun, or is over: use it in its `async with`"
            raise Misconfigured(f"{self!r} {state}")
        data = encoded(self._plan.codec, result, self._plan.max_bytes, self._key.what)
        once = self._once
        await run(once._connection, once_statements.complete(self._key, data), once._adapter)
        self._result = data

    def abandon(self) -> None:
        """Leave the block without a result: what was done in it is undone at its end, and nothing is remembered."""
        self._abandoned = True

    async def __aenter__(self) -> TransactionAttempt:
        once = self._once
        if self._entered:
            raise Misconfigured(f"{self!r} was entered before; ask for another attempt")
        if self.key in once._open:
            raise Misconfigured(f"an attempt at {self._key.what} is under way in this very transaction")
        once_statements.check_connection(once._connection, once._adapter, self._key)
        begun = await run(once._connection, once_statements.begin(self._key, self._wait), once._adapter)
        self._entered = True
        self._result, self._opened = begun.result, begun.opened
        self._running = begun.result is None
        if self._running:
            once._open.add(self.key)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if not self._running:
            return
        self._running = False
        once, completed = self._once, self.done and error is None and not self._abandoned
        once._open.discard(self.key)
        await run(once._connection, once_statements.leave(self._key, completed, self._opened), once._adapter)
        if not completed:
            self._result = None
            if error is None and not self._abandoned:
                raise Misconfigured(
                    f"the body of {self!r} ended without complete(): nothing is remembered, and what was done in it is "
                    "undone; call attempt.complete(result), or attempt.abandon()"
                )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._key.what}>"
