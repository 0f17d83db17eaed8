"""What happens to the processes of an engine: death with and without memory, and standing still.

Of an engine that needs a majority, one node at a time is struck: more would only stop it.
"""

from __future__ import annotations

from ..arena import Node
from ..checkers.in_time import SLACK_S
from ..clients.order import timeouts
from .model import Kind, Stage


def _node(stage: Stage) -> Node:
    assert stage.engine is not None
    return stage.chance.choice(stage.engine.nodes[: 1 if stage.engine.replica else None])


def kill_node(stage: Stage) -> None:
    node = _node(stage)
    assert stage.engine is not None
    with stage.during("kill-node", f"node:{node.name}"):
        node.kill()
        try:
            stage.last(0.05, 0.5)
        finally:
            node.start()
    stage.ending.wait(stage.engine.mends_for)


def amnesia(stage: Stage) -> None:
    engine = stage.engine
    assert engine is not None
    if not engine.nodes:
        assert engine.forget is not None
        with stage.during("amnesia", "engine"):
            engine.forget()
            stage.ending.wait(engine.mends_for)
        return
    node = _node(stage)
    with stage.during("amnesia", f"node:{node.name}"):
        node.kill()
        try:
            stage.last(0.05, 0.3)
        finally:
            node.wipe()
            node.start()
    if engine.replica is not None:
        engine.replica.disown()
    stage.ending.wait(engine.mends_for)


def pause_node(stage: Stage) -> None:
    node = _node(stage)
    with stage.during("pause-node", f"node:{node.name}"):
        node.pause()
        try:
            stage.last(0.5 * stage.ttl, 4 * stage.ttl)
        finally:
            node.resume()


def hang_node(stage: Stage) -> None:
    """As `pause_node`, and for longer than anybody waits: who has no timeout of its own is late."""
    node = _node(stage)
    timeout, request_timeout = timeouts(stage.ttl)
    longest = timeout + 2 * request_timeout + SLACK_S
    with stage.during("hang-node", f"node:{node.name}"):
        node.pause()
        try:
            stage.last(1.3 * longest, 1.6 * longest)
        finally:
            node.resume()
    stage.ending.wait(timeout)  # an engine of one server did nothing for all that time


KINDS = (
    Kind(
        "kill-node",
        "kill -9 of a server, which comes back with what it had on disk",
        "engine",
        kill_node,
        restarts=True,
        weight=0.7,
    ),
    Kind(
        "amnesia",
        "kill -9 of a server, which comes back empty",
        "engine",
        amnesia,
        forgets=True,
        weight=0.7,
    ),
    Kind("hang-node", "SIGSTOP of a server for longer than any timeout", "engine", hang_node, weight=0.2),
    Kind("pause-node", "SIGSTOP of a server", "engine", pause_node),
)
