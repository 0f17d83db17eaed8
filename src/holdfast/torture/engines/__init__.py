"""The engines that torture can start by itself, by the scheme of their URL. Each is imported when it is wanted."""

from __future__ import annotations

from importlib import import_module

from ...errors import Misconfigured
from ..sandbox import Sandbox
from .model import EngineOptions, TorturedEngine

STARTERS = {
    "sqlite": "sqlite",
    "redis": "redis",
    "redis+cluster": "redis_cluster",
    "redlock": "redlock",
    "postgresql": "postgresql",
    "postgresql+session": "postgresql",
    "mysql": "mysql",
    "mysql+session": "mysql",
    "etcd": "etcd",
    "etcds": "etcd",
    "zookeeper": "zookeeper",
}


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    """A throw-away engine. Raises `NotAvailable` with the reason if this machine has none."""
    if scheme not in STARTERS:
        raise Misconfigured(f"torture cannot start an engine {scheme!r}; it can: {', '.join(STARTERS)}")
    engine: TorturedEngine = import_module(f"{__name__}.{STARTERS[scheme]}").start(scheme, sandbox, engine_options)
    return engine


__all__ = ["STARTERS", "EngineOptions", "TorturedEngine", "start"]
