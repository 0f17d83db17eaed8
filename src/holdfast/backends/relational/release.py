"""How a session client takes back what it has asked a session for: afterwards the session holds and awaits nothing.

A session that cannot be asked is closed: the server frees what it held.
"""

from __future__ import annotations

from ..._core.flow import Flow
from ...errors import HoldfastError
from ...model import Claim
from .codec import SessionLockCodec
from .connection import TOO_LONG, DatabaseConnection
from .session_pool import SessionPool
from .waiters import ServerWaiter


def undo_take(
    pool: SessionPool, codec: SessionLockCodec, session: DatabaseConnection, claim: Claim, deadline: float
) -> Flow[None]:
    """The lock may be there, without its token, or the claim be seen waiting.

    This is waited for, because the unlock may take two statements, and the second one, behind the next take, would free
    what that has got.
    """
    try:
        yield from pool.ask(session, codec.unlock(claim.spec.name), deadline)
        yield from pool.ask(session, codec.leave(claim.owner), deadline)
    except HoldfastError:
        session.close()


def leave_server_queue(
    pool: SessionPool, codec: SessionLockCodec, waiter: ServerWaiter, name: str, deadline: float
) -> Flow[None]:
    """Out of the server's line. The lock may have been granted in this very moment: then it is let go of."""
    session = waiter.session
    try:
        if not waiter.request.done:
            shared = yield from pool.shared(deadline)
            yield from pool.ask_in_time(shared, codec.give_up(session.number), deadline)
            if not (yield from waiter.until(deadline)):
                session.fail(TOO_LONG)
        while not session.closed and (yield from pool.ask(session, codec.unlock(name), deadline, alone=True)):
            pass
        pool.put_back(session)
    except BaseException as error:
        close_waiting(pool, codec, waiter)
        if not isinstance(error, HoldfastError):
            raise


def close_waiting(pool: SessionPool, codec: SessionLockCodec, waiter: ServerWaiter) -> None:
    """Close a session that may wait at the server, which would not notice it (MariaDB): it is told, if that can be."""
    if not waiter.request.done and (shared := pool.current) is not None and not shared.closed:
        shared.start(codec.give_up(waiter.session.number))
    waiter.session.close()
