"""The library without its fences, in a worker process of a run that is to find out what they are for.

`once` and partitions have their fence in the program that uses them, so theirs is left out there.
"""

from __future__ import annotations

from typing import Any

from ...log import Position, cursors
from ...log.programs import statement
from ...log.redis import flows as redis_flows
from ...log.sync import runner
from ...recipes import actor_worker
from ...recipes.actor_record import ActorRecord


def _replace(module: object, name: str, value: object) -> None:
    assert hasattr(module, name), f"{module} has no {name}: nothing would be planted"
    setattr(module, name, value)


def remove_fence_of_actors() -> None:
    """A worker that comes too late writes the state that it has come to, and takes the first message from the inbox."""

    def acknowledge(
        core: Any, plan: Any, claimed: Any, state: str, handled: Any, limit: int, within: float | None = None
    ) -> Any:
        number = claimed.record.head_number

        def change(found: ActorRecord) -> ActorRecord:
            first = handled[: found.waiting]
            return (found.without_first(state, first) if first else found).beginning(limit)

        def is_done(found: ActorRecord) -> bool:  # by a try whose reply was lost
            return found.mark == claimed.token and (not handled or found.head_number != number)

        return actor_worker._change(core, plan, claimed, change, is_done, plan.ttl if within is None else within)

    _replace(actor_worker, "acknowledge", acknowledge)
    _replace(actor_worker, "_check_mark", lambda *given: None)


def remove_fence_of_log() -> None:
    """Nobody claims a partition, and a cursor goes where it is told to."""

    class NoFence:
        def __init__(self, connection: Any) -> None: ...

        def claim(self, resource: str, lease: Any) -> None: ...

    def move(dialect: str, partition: cursors.ConsumerPartition, position: Position) -> Any:
        yield statement(dialect, "move", *partition, *position)

    _replace(runner, "Fence", NoFence)
    _replace(cursors, "acknowledge", move)
    _replace(redis_flows, "digits", lambda token: "0" * 19)  # for its programs all tokens are the same
