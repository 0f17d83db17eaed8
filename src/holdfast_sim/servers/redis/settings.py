"""The settings of a server that clients read or change, with the defaults of Redis 7.0."""

from __future__ import annotations

USED_BYTES = 1_000_000
"""What the server is said to use: with a smaller `maxmemory` it is full."""

DEFAULTS = {
    "appenddirname": "appendonlydir",
    "appendfilename": "appendonly.aof",
    "appendfsync": "everysec",
    "appendonly": "no",
    "maxmemory": "0",
    "maxmemory-clients": "0",
    "maxmemory-eviction-tenacity": "10",
    "maxmemory-policy": "noeviction",
    "maxmemory-samples": "5",
    "min-replicas-to-write": "0",
    "replica-serve-stale-data": "yes",
    "requirepass": "",
}
