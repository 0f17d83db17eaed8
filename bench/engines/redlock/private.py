"""Peers that can not live in one environment with others: each from a folder of its own.

redlock-py and redlock-ng are both called `redlock`; redlock-ng and aioredlock hold redis-py and aioredis to old
releases.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(sys.prefix) / "peers"
CONTENDERS = ()


def load(package: str, module: str) -> ModuleType:
    """A module of a package that was put into its own folder, without its own dependencies."""
    folder = FOLDER / package
    if not folder.is_dir():
        raise ImportError(f"not installed: pip install --no-deps --target {folder} {package}")
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
