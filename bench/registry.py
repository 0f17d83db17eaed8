"""Finding engines and contenders by looking into `bench/engines/`: there is no list to keep."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from bench import engines, holdfast_contenders
from bench.model import Contender, Engine, Storage


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
    package = importlib.import_module(f"bench.engines.{engine_name}")
    found: list[Contender] = list(holdfast_contenders.CONTENDERS)
    for module in pkgutil.iter_modules(package.__path__):
        found += importlib.import_module(f"{package.__name__}.{module.name}").CONTENDERS
    order = {"floor": 0, "bare": 1, "holdfast": 2, "peer": 3}
    return tuple(sorted(found, key=lambda contender: (order[contender.role], contender.name.lower())))


def contender(engine_name: str, name: str) -> Contender:
    for found in contenders(engine_name):
        if found.name == name:
            return found
    raise LookupError(f"{engine_name} has no contender {name!r}")
