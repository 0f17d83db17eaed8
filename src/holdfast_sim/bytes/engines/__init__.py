"""The engines that are simulated to the byte, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .base import SimulatedEngine
from .etcd import SimulatedEtcd
from .mysql import SimulatedMariaDB, SimulatedMariaDBSessions
from .zookeeper import SimulatedZooKeeper

if TYPE_CHECKING:
    from ..world import ByteWorld

ENGINES: dict[str, Callable[[ByteWorld], SimulatedEngine]] = {
    "etcd": SimulatedEtcd,
    "mysql": SimulatedMariaDB,
    "mysql+session": SimulatedMariaDBSessions,
    "zookeeper": SimulatedZooKeeper,
}
