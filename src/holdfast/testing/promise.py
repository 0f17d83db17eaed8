"""A promise: something that holds on every engine, for threads and for tasks, written once."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..model import Promises

if TYPE_CHECKING:
    from .context import Context

PromiseFunction = Callable[["Context"], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Promise:
    """One row of the contract. `name` is its file and its function: `expiry.a_silent_holder_is_succeeded`."""

    name: str
    run: PromiseFunction
    needs: frozenset[str]
    """What the engine must be able to keep (see `Promises`); an engine that cannot declares that it cannot."""
    real_time: bool
    """Other processes or threads take part, so time cannot be made to jump."""
    leaves: bool
    """Something stays behind at the engine until it expires."""
    network: bool = False
    """It is about connections to servers, so an engine that has none keeps it without being asked."""
    threads_need: frozenset[str] = frozenset()
    """What it needs in addition where the body is "sync"."""
    without: str = ""
    """It says what holds where an engine declares that it cannot keep this one; elsewhere there is nothing to run."""

    def needs_of(self, body: str) -> frozenset[str]:
        """What the engine must be able to keep for this body."""
        return self.needs | self.threads_need if body == "sync" else self.needs


def promise(
    *,
    needs: Iterable[str] = (),
    real_time: bool = False,
    leaves: bool = False,
    network: bool = False,
    threads_need: Iterable[str] = (),
    without: str = "",
) -> Callable[[PromiseFunction], Promise]:
    """Make an asyncio function of a `Context` a promise."""

    def make(run: PromiseFunction) -> Promise:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__}"
        needed, for_threads = frozenset(needs), frozenset(threads_need)
        if unknown := (needed | for_threads | ({without} - {""})) - Promises.KNOWN:
            raise ValueError(
                f"{name} needs {sorted(unknown)}, which no engine can declare: see holdfast.model.Promises"
            )
        return Promise(name, run, needed, real_time or network, leaves, network, for_threads, without)

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
