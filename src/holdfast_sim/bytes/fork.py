"""A client process forks: parent and child go on with the same connections, and the child must use none of them.

1. A fork comes between two steps, as `before_fork` sees to it. The child has a copy of all that the parent's client and
   backend know, and none of its tasks: those ran on other threads.
2. A connection is one for both. What the child sends on it reaches the server among what the parent sends, and a reply
   goes to whoever reads first. That the child closes its copy is noticed by nobody.
3. The child is told (`after_fork_in_child`), begins a coordinator of its own, and works like any other process.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from ..connections import SimConnection
from ..driver import Task
from .observer import OBSERVED

if TYPE_CHECKING:
    from holdfast.ports import Opened

    from .process import ClientProcess


class InheritedConnection:
    """The child's copy of a connection."""

    def __init__(self, connection: SimConnection) -> None:
        self._connection = connection
        self.closed = connection.closed

    def send(self, data: bytes) -> None:
        self._connection.send(data)

    def write(self, data: bytes) -> bool:
        return self._connection.write(data)

    def receive(self, task: Task, deadline: float) -> bytes | None:
        return self._connection.receive(task, deadline)

    def read(self) -> bytes | None:
        return self._connection.read()

    def readable(self) -> bool:
        return self._connection.readable()

    def watch(self, action: Callable[[], None]) -> None:
        self._connection.watch(action)

    def close(self) -> None:
        self.closed = True

    def abandon(self) -> None:
        self.closed = True


def copied(parent: ClientProcess, opened: Opened[Any, Any], plain: dict[str, Any]) -> Opened[Any, Any]:
    """The client and the backend as a child has them (rules 1 and 2). `plain`: the backend's own, without observer."""
    memo: dict[int, Any] = {}
    for connection in parent.connections:
        memo[id(connection)] = InheritedConnection(connection)
    child = deepcopy(opened, memo)
    for name in OBSERVED:
        vars(child.backend).pop(name, None)
    vars(child.backend).update(deepcopy(plain, memo))
    return child
