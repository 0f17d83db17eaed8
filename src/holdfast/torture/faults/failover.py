"""Asynchronous fail-over: the replica is cut off, the primary dies, the replica takes over."""

from __future__ import annotations

from ..engines import TorturedEngine
from .model import FaultContext, FaultKind


def failover(context: FaultContext) -> None:
    assert context.engine is not None
    replica = context.engine.replica
    assert replica is not None
    replica.lag()
    with context.during("failover", "engine"):
        context.last(0.1, 3 * context.ttl)
        replica.fail_over()


def _no_replica(engine: TorturedEngine) -> str:
    return "" if engine.replica is not None else "this engine was started without a replica"


KINDS = (
    FaultKind(
        "failover",
        "the primary dies, a replica that lags behind takes over",
        "engine",
        failover,
        _no_replica,
        forgets=True,
    ),
)
