"""Compare-and-swap for asyncio: the names of `holdfast.cas`, with methods to await.

Redis takes a client of `redis.asyncio`, etcd a coroutine function or a plain one. kazoo has no asyncio: a `ZNode` takes
the same blocking client as in threads. Whatever blocks (kazoo, files, a plain function) runs in a thread of asyncio's.
"""

from __future__ import annotations

from ...errors import FenceRejected, Missing, OutcomeUnknown, VersionConflict
from ..codecs import BYTES, INTEGER, JSON, TEXT, ValueCodec
from ..tries import Retry, Stats
from ..update import Versioned
from .register import Register
from .registers import EtcdKey, RedisHash, RedisKey, VersionedFile, ZNode

__all__ = [
    "BYTES",
    "INTEGER",
    "JSON",
    "TEXT",
    "EtcdKey",
    "FenceRejected",
    "Missing",
    "OutcomeUnknown",
    "RedisHash",
    "RedisKey",
    "Register",
    "Retry",
    "Stats",
    "ValueCodec",
    "VersionConflict",
    "Versioned",
    "VersionedFile",
    "ZNode",
]
