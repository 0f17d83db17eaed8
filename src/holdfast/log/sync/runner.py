"""Runs the log's flows on blocking connections and clients, behind a fence where there is a lease; how a relay waits.

A transaction of SQLite that was begun here, because there was none, is rolled back if what it was begun for fails.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, cast

from ...fenced.clients import is_asyncio
from ...fenced.holder import Holder
from ...sql.error_mapping import no_transaction
from ...sql.statements import Exchange
from ...sql.sync import runner as sql
from ...sql.sync.fence import Fence
from ...sql.sync.runner import call
from ...sync.base_lock import acquire_unless
from ...sync.lease import Lease
from ...sync.lock import Lock
from .. import target
from ..flows import LogFlow
from ..redis.requests import RedisExchange, RedisRequest, is_unknown_program
from ..target import LogTarget

__all__ = [
    "Lease",
    "Lock",
    "acquire_unless",
    "call",
    "close",
    "commit",
    "run",
    "run_fenced",
    "target_for",
    "wait_for_stop",
]

T = TypeVar("T")


def target_for(connection: Any) -> LogTarget:
    """The target of a blocking connection or client, or `Misconfigured`."""
    return target.target_for(connection, asynchronous=False)


def run(target: LogTarget, flow: LogFlow[T]) -> T:
    """Run a flow to its end."""
    if target.adapter is None:
        return _run_on_redis(target.connection, cast("RedisExchange[T]", flow))
    return sql.run(target.connection, cast("Exchange[T]", flow), target.adapter)


def run_fenced(target: LogTarget, flow: LogFlow[T], resource: str, lease: Holder | None) -> T:
    """Claim the resource, if there is a lease, then run the flow. A program of Redis claims by itself."""
    connection, adapter = target.connection, target.adapter
    begins = adapter is not None and adapter.library == "sqlite3" and not connection.in_transaction
    if begins and getattr(connection, "autocommit", None) is True:  # Python 3.12: its commit() would do nothing
        raise no_transaction("what is written to the log")
    try:
        if lease is not None and adapter is not None:
            Fence(connection).claim(resource, lease)
        return run(target, flow)
    except BaseException:
        if begins and connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _run_on_redis(client: Any, flow: RedisExchange[T]) -> T:
    try:
        request = next(flow)
        while True:
            try:
                reply = _send(client, request)
            except Exception as error:  # noqa: BLE001  the flow decides what it means
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


def _send(client: Any, request: RedisRequest) -> object:
    try:
        return client.execute_command(*request.by_digest(), NEVER_DECODE=True)
    except Exception as error:
        if not is_unknown_program(error):
            raise
    return client.execute_command(*request.by_text(), NEVER_DECODE=True)


def commit(connection: Any) -> None:
    """Commit what a relay has done, where there is a transaction."""
    if is_asyncio(connection) is None:
        connection.commit()


def close(connection: Any) -> None:
    """Close what a relay has opened."""
    connection.close()


def wait_for_stop(stop: threading.Event, seconds: float) -> None:
    """Wait until `stop` is set, but not longer than that."""
    stop.wait(seconds)
