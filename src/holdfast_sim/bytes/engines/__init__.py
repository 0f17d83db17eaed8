"""The engines that are simulated to the byte, by name."""

from __future__ import annotations

from .base import SimulatedEngine
from .etcd import SimulatedEtcd
from .mysql import SimulatedMariaDB, SimulatedMariaDBSessions
from .postgresql import SimulatedPostgreSQL, SimulatedPostgreSQLSessions
from .redis import SimulatedRedis
from .zookeeper import SimulatedZooKeeper

ENGINES: dict[str, type[SimulatedEngine]] = {
    "etcd": SimulatedEtcd,
    "mysql": SimulatedMariaDB,
    "mysql+session": SimulatedMariaDBSessions,
    "postgresql": SimulatedPostgreSQL,
    "postgresql+session": SimulatedPostgreSQLSessions,
    "redis": SimulatedRedis,
    "zookeeper": SimulatedZooKeeper,
}
