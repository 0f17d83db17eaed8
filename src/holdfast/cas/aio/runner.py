"""Carries out the flows of `holdfast.cas` in a task.

1. Calls that block (files, kazoo, plain functions for etcd) are made by a thread of asyncio's: the loop goes on.
2. A cancelled task may have written or not: read and decide, as after `OutcomeUnknown`.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from ..._core.flow import NOW, RANDOM, Sleep
from ...errors import Misconfigured
from ...fenced.clients import check_client, is_asyncio
from ...fenced.etcd.programs import Txn
from ..etcd.key import TRANSACT
from ..update import Step

T = TypeVar("T")
Transact: TypeAlias = Callable[[Txn], Awaitable[Txn] | Txn]


async def run(flow: Step[T], perform: Callable[[Any], Awaitable[object]]) -> T:
    """Run a flow to its end; `perform` carries out the requests of its resource."""
    try:
        op = next(flow)
        while True:
            try:
                answer = await _carry_out(op, perform)
            except Exception as error:  # noqa: BLE001  the flow decides what it means
                op = flow.throw(error)
            else:
                op = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def _carry_out(op: object, perform: Callable[[Any], Awaitable[object]]) -> object:
    if isinstance(op, Sleep):
        await asyncio.sleep(op.seconds)
        return None
    if op is NOW:
        return time.monotonic()
    if op is RANDOM:
        return random.random()
    return await perform(op)


async def call(blocking: Callable[[], object]) -> object:
    """Carry out a call that blocks."""
    return await asyncio.to_thread(blocking)


def asked_by(transact: Transact) -> Callable[[Txn], Awaitable[object]]:
    """A coroutine function is awaited; any other is taken to block, and a thread calls it."""
    check_client(transact, "EtcdKey", TRANSACT)
    awaited = inspect.iscoroutinefunction(transact) or inspect.iscoroutinefunction(getattr(transact, "__call__", None))  # noqa: B004

    async def perform(txn: Txn) -> object:
        answer = transact(txn) if awaited else await asyncio.to_thread(transact, txn)
        return await answer if inspect.isawaitable(answer) else answer

    return perform


def check_colour(client: Any, register: str) -> None:
    """Raise `Misconfigured` if a blocking client of redis-py is to be awaited."""
    if is_asyncio(client) is False:
        raise Misconfigured(
            f"holdfast.cas.aio.{register} takes an asyncio client; for {type(client).__qualname__} there is "
            f"holdfast.cas.{register}"
        )
