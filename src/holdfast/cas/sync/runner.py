"""Carries out the flows of `holdfast.cas` in the caller's thread."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ..._core.flow import NOW, RANDOM, Sleep
from ...errors import Misconfigured
from ...fenced.clients import check_client, is_asyncio
from ...fenced.etcd.programs import Txn
from ..etcd.key import TRANSACT
from ..update import Step

T = TypeVar("T")
Transact: TypeAlias = Callable[[Txn], Txn]


def run(flow: Step[T], perform: Callable[[Any], object]) -> T:
    """Run a flow to its end; `perform` carries out the requests of its resource."""
    try:
        op = next(flow)
        while True:
            try:
                answer = _carry_out(op, perform)
            except Exception as error:  # noqa: BLE001  the flow decides what it means
                op = flow.throw(error)
            else:
                op = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _carry_out(op: object, perform: Callable[[Any], object]) -> object:
    if isinstance(op, Sleep):
        time.sleep(op.seconds)
        return None
    if op is NOW:
        return time.monotonic()
    if op is RANDOM:
        return random.random()
    return perform(op)


def call(blocking: Callable[[], object]) -> object:
    """Carry out a call that blocks."""
    return blocking()


def asked_by(transact: Transact) -> Callable[[Txn], object]:
    """A function that is to be awaited is refused, before or after it was called: nothing was sent."""
    check_client(transact, "EtcdKey", TRANSACT)

    def perform(txn: Txn) -> object:
        answer = transact(txn)
        if inspect.isawaitable(answer):
            getattr(answer, "close", lambda: None)()
            raise Misconfigured("holdfast.cas.EtcdKey was given a function to await; use holdfast.cas.aio.EtcdKey")
        return answer

    return perform


def check_colour(client: Any, register: str) -> None:
    """Raise `Misconfigured` if a client of `redis.asyncio` is to block."""
    if is_asyncio(client) is True:
        raise Misconfigured(
            f"holdfast.cas.{register} takes a blocking client; for {type(client).__qualname__} there is "
            f"holdfast.cas.aio.{register}"
        )
