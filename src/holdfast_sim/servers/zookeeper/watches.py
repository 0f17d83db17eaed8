"""Who is to be told of what, on one server. Watches are not shared between servers, and end with their connection.

1. There are two tables: of data (which also holds watches on what is not there yet), and of children.
2. A watch is told once. A node that is deleted tells its data's watchers, then those of its children who were not among
   the former, and then those of its parent's children.
"""

from __future__ import annotations

from typing import Protocol

CREATED, DELETED, DATA_CHANGED, CHILDREN_CHANGED = 1, 2, 3, 4
CHILDREN, DATA, ANY = 1, 2, 3
"""What `REMOVE_WATCHES` removes."""


class Watcher(Protocol):
    def notify(self, kind: int, path: str) -> None: ...


class Watches:
    """Both tables of a server."""

    def __init__(self) -> None:
        self._data: dict[str, dict[Watcher, None]] = {}
        self._children: dict[str, dict[Watcher, None]] = {}
        self._paths: dict[Watcher, set[str]] = {}

    def on_data(self, path: str, watcher: Watcher) -> None:
        self._add(self._data, path, watcher)

    def on_children(self, path: str, watcher: Watcher) -> None:
        self._add(self._children, path, watcher)

    def _add(self, table: dict[str, dict[Watcher, None]], path: str, watcher: Watcher) -> None:
        table.setdefault(path, {})[watcher] = None
        self._paths.setdefault(watcher, set()).add(path)

    def remove(self, path: str, which: int, watcher: Watcher) -> bool:
        """Whether there was one."""
        found = False
        if which in (CHILDREN, ANY):
            found |= self._children.get(path, {}).pop(watcher, self) is None
        if which in (DATA, ANY):
            found |= self._data.get(path, {}).pop(watcher, self) is None
        return found

    def forget(self, watcher: Watcher) -> None:
        """Its connection has ended."""
        for path in self._paths.pop(watcher, ()):
            for table in (self._data, self._children):
                if (found := table.get(path)) is not None:
                    found.pop(watcher, None)
                    if not found:
                        del table[path]

    @property
    def count(self) -> int:
        return sum(len(found) for table in (self._data, self._children) for found in table.values())

    # What happened

    def created(self, path: str, parent: str) -> None:
        self._tell(self._data.pop(path, {}), CREATED, path)
        self._tell(self._children.pop(parent, {}), CHILDREN_CHANGED, parent)

    def deleted(self, path: str, parent: str) -> None:
        told = self._data.pop(path, {})
        self._tell(told, DELETED, path)
        self._tell({each: None for each in self._children.pop(path, {}) if each not in told}, DELETED, path)
        self._tell(self._children.pop(parent, {}), CHILDREN_CHANGED, parent)

    def data_changed(self, path: str) -> None:
        self._tell(self._data.pop(path, {}), DATA_CHANGED, path)

    @staticmethod
    def _tell(watchers: dict[Watcher, None], kind: int, path: str) -> None:
        for watcher in watchers:
            watcher.notify(kind, path)
