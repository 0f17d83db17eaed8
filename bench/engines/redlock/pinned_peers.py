"""Peers that cannot live in one environment with others: each from a folder of its own.

redlock-py and redlock-ng are both called `redlock`; redlock-ng and aioredlock hold redis-py and aioredis to old
releases.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from tests.support.aside import aside

CONTENDERS = ()
PINNED = {
    "aioredlock": ("aioredlock==0.7.3", "aioredis==1.3.1", "async-timeout==4.0.3"),
    "redlock-ng": ("redlock-ng==2.0.4",),
    "redlock-py": ("redlock-py==1.0.8",),
}


def load(package: str, module: str) -> ModuleType:
    """A module of a package that is put into its own folder, without its own dependencies."""
    folder = aside(package, *PINNED[package])
    taken = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == module}
    sys.path.insert(0, str(folder))
    try:
        loaded = importlib.import_module(module)
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == module]:
            del sys.modules[name]
        sys.modules.update(taken)
    return loaded
