"""Compare-and-swap: change a value without a lock, if nobody else has changed it since it was read.

    stock = cas.RedisKey(client, "stock/7", cas.INTEGER)
    stock.update(lambda left: left - 1)               read, change, write if unchanged; again, with jitter, if not
    found = stock.read()                              the value and its version
    stock.swap(found.value - 1, found.version)        one try: `VersionConflict` if somebody was quicker
    stock.create(10)                                  one try: `VersionConflict` if it is there
    stock.stats.conflict_rate                         the part of the tries that met a conflict

Registers: `RedisKey`, `RedisHash`, `EtcdKey`, `ZNode`, `VersionedFile`, on your own client; under the same names for
asyncio in `holdfast.cas.aio`. Rows of a database: `holdfast.sql.versioned_update` and `retry`.

Three different errors: `Missing` (nothing is there), `VersionConflict` (somebody was quicker, in all tries), and, where
an update has a `lease`, `FenceRejected` (its token is stale). A lost reply is settled, or told as `OutcomeUnknown`.
"""

from __future__ import annotations

from ..errors import FenceRejected, Missing, OutcomeUnknown, VersionConflict
from .codecs import BYTES, INTEGER, JSON, TEXT, ValueCodec
from .sync.register import Register
from .sync.registers import EtcdKey, RedisHash, RedisKey, VersionedFile, ZNode
from .tries import Retry, Stats
from .update import Versioned

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
