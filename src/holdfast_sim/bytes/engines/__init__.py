"""The engines that are simulated to the byte, by name."""

from __future__ import annotations

from .base import SimulatedEngine
from .etcd import SimulatedEtcd
from .mysql import SimulatedMariaDB, SimulatedMariaDBSessions
from .redis import SimulatedRedis
from .zookeeper import SimulatedZooKeeper

ENGINES: dict[str, type[SimulatedEngine]] = {
    "etcd": SimulatedEtcd,
    "mysql": SimulatedMariaDB,
    "mysql+session": SimulatedMariaDBSessions,
    "redis": SimulatedRedis,
    "zookeeper": SimulatedZooKeeper,
}
