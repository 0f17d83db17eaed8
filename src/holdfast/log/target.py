"""What a call of the log is made on: the user's connection or client, and the flows of its engine."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakSet

from ..cas.redis.clients import check_redis_client
from ..errors import Misconfigured
from ..fenced.clients import is_asyncio
from ..sql.adapters import Adapter, adapter_for
from .flows import LogFlows
from .redis.flows import RedisFlows
from .sql_flows import SqlFlows

REDIS_FLOWS = RedisFlows()
_REDIS_CLIENTS: dict[bool, WeakSet[type]] = {False: WeakSet(), True: WeakSet()}
"""Classes of clients that have been checked, blocking and asyncio: a check costs as much as the rest of a call."""


class LogTarget(NamedTuple):
    """A connection, and how it is spoken to. Without an adapter it is a client of redis-py."""

    connection: Any
    flows: LogFlows
    adapter: Adapter | None


def target_for(connection: Any, asynchronous: bool) -> LogTarget:
    """The target of a connection or client, or `Misconfigured`."""
    kind = type(connection)
    if kind in _REDIS_CLIENTS[asynchronous]:
        return LogTarget(connection, REDIS_FLOWS, None)
    colour = is_asyncio(connection)
    if colour is None:
        try:
            adapter = adapter_for(connection, asynchronous)
        except Misconfigured as error:
            raise Misconfigured(f"{error}; of Redis a client of redis-py") from None
        return LogTarget(connection, SqlFlows(adapter.dialect), adapter)
    where = "holdfast.log.aio" if asynchronous else "holdfast.log"
    check_redis_client(connection, where)
    if colour is not asynchronous:
        raise Misconfigured(
            f"{where} takes {'an asyncio' if asynchronous else 'a blocking'} client; for a "
            f"{kind.__module__.partition('.client')[0]} client there is "
            f"{'holdfast.log' if asynchronous else 'holdfast.log.aio'}"
        )
    _REDIS_CLIENTS[asynchronous].add(kind)
    return LogTarget(connection, REDIS_FLOWS, None)
