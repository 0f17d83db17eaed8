"""One key of a `holdfast.sql.Once`, as its statements have it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

from ..errors import PayloadMismatch

TABLE = "holdfast_once"
SECOND_US = 1_000_000
_numbers = itertools.count(1)
NOW = {
    "postgresql": "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)",
    "mysql": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)",
}


@dataclass(frozen=True, slots=True)
class OnceKey:
    """One key, as the statements have it."""

    dialect: str
    name: str
    key: str
    fingerprint: str
    keep: float
    savepoint: str = field(default_factory=lambda: f"holdfast_once_{next(_numbers)}", compare=False)
    """Another one for each attempt, also at the same key: in MariaDB a new savepoint of the same name ends the old one,
    and nobody could go back to where the first attempt began."""

    @property
    def what(self) -> str:
        return f"{self.key!r} of {self.name!r}"

    @property
    def names(self) -> tuple[object, object]:
        """MariaDB keeps them as bytes, so that no character set of a connection comes between a key and its row."""
        return (self.name.encode(), self.key.encode()) if self.dialect == "mysql" else (self.name, self.key)

    @property
    def keep_us(self) -> int:
        return math.ceil(self.keep * SECOND_US)

    def matched(self, fingerprint: object) -> None:
        stored = bytes(fingerprint).decode() if isinstance(fingerprint, bytes | bytearray) else str(fingerprint)
        if self.fingerprint and stored and stored != self.fingerprint:
            raise PayloadMismatch(self.name, self.key)
