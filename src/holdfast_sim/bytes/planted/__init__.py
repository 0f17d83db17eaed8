"""Known bugs of clients, planted into the code that ships: the byte world must find each of them on its engine.

Each is taken from a review of the clients that were written before there was a simulation to the byte. `table` prints
which are found, and after how many seeds.
"""

from . import etcd, mysql, postgresql, redis, redis_connections, relational, zookeeper
from .registry import CLIENT_BUGS, ClientBug, planted_client

__all__ = [
    "CLIENT_BUGS",
    "ClientBug",
    "etcd",
    "mysql",
    "planted_client",
    "postgresql",
    "redis",
    "redis_connections",
    "relational",
    "zookeeper",
]
