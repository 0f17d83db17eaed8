"""What is asked of a `holdfast.sql.Once`, checked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from types import EllipsisType

from ..errors import Misconfigured
from ..model import check_name, check_seconds
from ..recipes.durations import seconds
from ..recipes.once_record import MAX_RESULT_BYTES, ResultCodec, codec_of


@dataclass(frozen=True, slots=True)
class SqlOncePlan:
    """What was asked for, checked."""

    name: str
    keep: float
    wait: float | None
    codec: ResultCodec
    max_bytes: int

    def key_of(self, key: str) -> str:
        return check_name(key, "key")

    def wait_of(self, wait: float | EllipsisType | None, key: str) -> float | None:
        limit = self.wait if isinstance(wait, EllipsisType) else wait
        if limit is not None:
            check_seconds("wait", limit, key)
        return limit


def plan_sql_once(
    name: str, keep: float | str, wait: float | None, codec: ResultCodec | None, max_bytes: int
) -> SqlOncePlan:
    check_name(name)
    if wait is not None:
        check_seconds("wait", wait, name)
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or not 1 <= max_bytes <= 8 * MAX_RESULT_BYTES:
        raise Misconfigured(f"max_bytes of {name!r} is a whole number from 1 to {8 * MAX_RESULT_BYTES}")
    return SqlOncePlan(name, seconds("keep", keep, name), wait, codec_of(codec, name), max_bytes)
