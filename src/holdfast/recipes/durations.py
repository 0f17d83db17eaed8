"""Durations as people write them: "24h", "90 s", 3600."""

from __future__ import annotations

import re

from ..errors import Misconfigured
from ..model import check_seconds

UNITS_S = {"ms": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0,
           "hour": 3600.0, "d": 86400.0, "day": 86400.0}  # fmt: skip
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


def seconds(what: str, value: float | str, of: str) -> float:
    """
    >>> seconds("keep", "24h", "payments")
    86400.0
    >>> seconds("keep", 90, "payments"), seconds("keep", "400ms", "payments"), seconds("keep", "2 days", "payments")
    (90.0, 0.4, 172800.0)
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        unit = UNITS_S.get(match[2]) or UNITS_S.get(match[2].removesuffix("s")) if match else None
        if match is None or unit is None:
            raise Misconfigured(f"{what} of {of!r} is {value!r}; write it as '24h', '90s' or '7d', or as seconds")
        value = float(match[1]) * unit
    check_seconds(what, value, of, above=0)
    return float(value)
