"""Finding engines and contenders by looking into `bench/engines/`: there is no list to keep."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any

from bench import engines, holdfast_contenders
from bench.model import Contender, Engine, Storage
from bench.tool_model import PartitionContender, ToolContender, ZombieContender


def engine_names() -> list[str]:
    return sorted(found.name for found in pkgutil.iter_modules(engines.__path__) if found.ispkg)


def engine(name: str) -> Engine:
    found = importlib.import_module(f"bench.engines.{name}").ENGINE
    assert isinstance(found, Engine)
    return found


def storage(engine_name: str) -> Storage | None:
    """Of its module `storage`; None: it keeps nothing outside of the client."""
    package = importlib.import_module(f"bench.engines.{engine_name}")
    if "storage" not in {module.name for module in pkgutil.iter_modules(package.__path__)}:
        return None
    found = importlib.import_module(f"{package.__name__}.storage").STORAGE
    assert isinstance(found, Storage)
    return found


@cache
def contenders(engine_name: str) -> tuple[Contender, ...]:
    """What is done by hand first, then holdfast, then the peers by name."""
    found: list[Contender] = list(holdfast_contenders.CONTENDERS)
    for module in _modules(engine_name):
        found += module.CONTENDERS
    return tuple(sorted(found, key=_order))


@cache
def tools(engine_name: str) -> tuple[ToolContender, ...]:
    """In the same order; of `TOOLS` in its modules, as the next two of `ZOMBIES` and `PARTITIONS`."""
    return tuple(sorted(_listed(engine_name, "TOOLS"), key=_order))


@cache
def zombies(engine_name: str) -> tuple[ZombieContender, ...]:
    return tuple(sorted(_listed(engine_name, "ZOMBIES"), key=_order))


@cache
def partitions(engine_name: str) -> tuple[PartitionContender, ...]:
    return tuple(sorted(_listed(engine_name, "PARTITIONS"), key=_order))


def _modules(engine_name: str) -> list[ModuleType]:
    package = importlib.import_module(f"bench.engines.{engine_name}")
    return [
        importlib.import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)
    ]


def _listed(engine_name: str, what: str) -> list[Any]:
    return [each for module in _modules(engine_name) for each in getattr(module, what, ())]


def _order(each: Contender | ToolContender | ZombieContender | PartitionContender) -> tuple[int, str]:
    return {"floor": 0, "bare": 1, "holdfast": 2, "peer": 3}[each.role], each.name.lower()


def contender(engine_name: str, name: str) -> Contender:
    for found in contenders(engine_name):
        if found.name == name:
            return found
    raise LookupError(f"{engine_name} has no contender {name!r}")
