"""Carries out the flows of `holdfast.cas` in the caller's thread."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..._core.flow import NOW, RANDOM, Sleep
from ...errors import Misconfigured
from ...fenced.clients import is_asyncio
from ..update import Step

T = TypeVar("T")


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


def check_colour(client: Any, register: str) -> None:
    """Raise `Misconfigured` if a client of `redis.asyncio` is to block."""
    if is_asyncio(client) is True:
        raise Misconfigured(
            f"holdfast.cas.{register} takes a blocking client; for {type(client).__qualname__} there is "
            f"holdfast.cas.aio.{register}"
        )
