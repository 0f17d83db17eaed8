# Generated from src/holdfast/aio/rwlock.py by `make generate`: change that file, not this one.
"""A read-write lock: two locks to ask for, one for readers and one for a writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..recipes import specs
from ..recipes.options import Options, check_hook
from .lease import Lease
from .lock import Lock

if TYPE_CHECKING:
    from .coordinator import Coordinator


class RWLock:
    """The two sides of a read-write lock."""

    def __init__(
        self, coordinator: Coordinator, name: str, on_lost: Callable[[Lease], object] | None, options: Options
    ) -> None:
        check_hook("on_lost", on_lost, name, awaits=False)
        self._coordinator = coordinator
        self._on_lost = on_lost
        self._reader = coordinator._specs.get(name, options, specs.reader)
        self._writer = coordinator._specs.get(name, options, specs.writer)

    def read(self) -> Lock:
        """The side of the readers: many together."""
        return Lock(self._coordinator, self._reader, self._on_lost)

    def write(self) -> Lock:
        """The side of a writer: alone."""
        return Lock(self._coordinator, self._writer, self._on_lost)
