"""The library without its fences, in a worker process of a run that is to find out what they are for.

`once` and partitions have their fence in the program that uses them, so theirs is left out there.
"""

from __future__ import annotations

from typing import Any

from ...log import Position, cursors
from ...log.programs import statement
from ...log.sync import runner
from ...recipes import actor_worker
from ...recipes.actor_record import ActorRecord


def _replace(module: object, name: str, value: object) -> None:
    assert hasattr(module, name), f"{module} has no {name}: nothing would be planted"
    setattr(module, name, value)


def remove_fence_of_actors() -> None:
    """A worker that comes too late writes the state that it has come to, and takes the first message from the inbox."""
    change_behind_fence = actor_worker._change

    def change(core: Any, plan: Any, claimed: Any, alter: Any, is_done: Any, within: float, marked: bool = True) -> Any:
        def done(found: ActorRecord) -> bool:
            return not found.inbox or (found.mark == claimed.token and is_done(found))

        return change_behind_fence(core, plan, claimed, alter, done if marked else is_done, within, marked)

    _replace(actor_worker, "_change", change)
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
