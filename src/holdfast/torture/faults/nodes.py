"""Faults of an engine's processes: killed with and without their data, and paused.

Of an engine that needs a majority, one node at a time fails: more would only stop it.
"""

from __future__ import annotations

from ..checkers.timeouts import SLACK_S
from ..clients.config import timeouts
from ..sandbox import ServerNode
from .model import FaultContext, FaultKind


def _node(context: FaultContext) -> ServerNode:
    assert context.engine is not None
    return context.chance.choice(context.engine.nodes[: 1 if context.engine.replica else None])


def kill_node(context: FaultContext) -> None:
    node = _node(context)
    assert context.engine is not None
    with context.during("kill-node", f"node:{node.name}"):
        node.kill()
        try:
            context.last(0.05, 0.5)
        finally:
            node.start()
    context.ending.wait(context.engine.recovery_s)


def amnesia(context: FaultContext) -> None:
    engine = context.engine
    assert engine is not None
    if not engine.nodes:
        assert engine.forget is not None
        with context.during("amnesia", "engine"):
            engine.forget()
            context.ending.wait(engine.recovery_s)
        return
    node = _node(context)
    with context.during("amnesia", f"node:{node.name}"):
        node.kill()
        try:
            context.last(0.05, 0.3)
        finally:
            node.wipe()
            node.start()
    if engine.replica is not None:
        engine.replica.disown()
    context.ending.wait(engine.recovery_s)


def pause_node(context: FaultContext) -> None:
    node = _node(context)
    with context.during("pause-node", f"node:{node.name}"):
        node.pause()
        try:
            context.last(0.5 * context.ttl, 4 * context.ttl)
        finally:
            node.resume()


def hang_node(context: FaultContext) -> None:
    """As `pause_node`, but longer than any timeout: a request without a timeout is found by that."""
    node = _node(context)
    timeout, request_timeout = timeouts(context.ttl)
    longest = timeout + 2 * request_timeout + SLACK_S
    with context.during("hang-node", f"node:{node.name}"):
        node.pause()
        try:
            context.last(1.3 * longest, 1.6 * longest)
        finally:
            node.resume()
    context.ending.wait(timeout)  # an engine of one server did nothing for all that time


KINDS = (
    FaultKind(
        "kill-node",
        "kill -9 of a server, which comes back with what it had on disk",
        "engine",
        kill_node,
        restarts=True,
        weight=0.7,
    ),
    FaultKind(
        "amnesia",
        "kill -9 of a server, which comes back empty",
        "engine",
        amnesia,
        forgets=True,
        weight=0.7,
    ),
    FaultKind("hang-node", "SIGSTOP of a server for longer than any timeout", "engine", hang_node, weight=0.2),
    FaultKind("pause-node", "SIGSTOP of a server", "engine", pause_node),
)
