"""Asynchronous fail-over: the replica stops hearing, the primary dies, the replica takes its place."""

from __future__ import annotations

from ..engines import Engine
from .model import Kind, Stage


def failover(stage: Stage) -> None:
    assert stage.engine is not None
    replica = stage.engine.replica
    assert replica is not None
    replica.lag()
    with stage.during("failover", "engine"):
        stage.last(0.1, 3 * stage.ttl)
        replica.fail_over()


def _no_replica(engine: Engine) -> str:
    return "" if engine.replica is not None else "this engine was started without a replica"


KINDS = (
    Kind(
        "failover",
        "the primary dies, a replica that lags behind takes over",
        "engine",
        failover,
        _no_replica,
        forgets=True,
    ),
)
