"""A promise: something that holds on every engine, for threads and for tasks, written once."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .stage import Stage

Play = Callable[["Stage"], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Promise:
    """One row of the contract. `name` is its file and its function: `expiry.a_silent_holder_is_succeeded`."""

    name: str
    play: Play
    needs: frozenset[str]
    """What the engine must be able to do (see `Promises`); where it can not, it must say so."""
    real_time: bool
    """Other processes or threads take part, so time can not be made to jump."""
    leaves: bool
    """Something stays behind at the engine until it expires."""
    network: bool = False
    """It is about connections to servers, so an engine that has none keeps it without being asked."""


def promise(
    *, needs: Iterable[str] = (), real_time: bool = False, leaves: bool = False, network: bool = False
) -> Callable[[Play], Promise]:
    """Make an asyncio function of a `Stage` a promise."""

    def make(play: Play) -> Promise:
        name = f"{play.__module__.rpartition('.')[2]}.{play.__name__}"
        return Promise(name, play, frozenset(needs), real_time or network, leaves, network)

    return make


@cache
def contract_promises() -> tuple[Promise, ...]:
    """The whole contract, in the order of its files."""
    from . import promises as files

    found = []
    for file in sorted(info.name for info in pkgutil.iter_modules(files.__path__)):
        module = import_module(f"{files.__name__}.{file}")
        found += [value for value in vars(module).values() if isinstance(value, Promise)]
    return tuple(found)
