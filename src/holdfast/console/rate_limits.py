"""The rate limits that somebody has named (`--limit mail=5/s`), and how much of each is used.

An engine keeps one number per limiter, under the limiter's name, and lists none of them: who wants to see one says its
name and its rate, as the program does. Looking spends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import Coordinator
from ..errors import HoldfastError, Misconfigured
from ..recipes.limiter import Rate
from ..sync.limiter import Limiter

EXAMPLE = "mail=5/s or mail=5/s,burst=10"


def parse_limit(text: str) -> tuple[str, str, int]:
    """Name, rate and burst.

    >>> parse_limit("mail/user7=100/min,burst=20")
    ('mail/user7', '100/min', 20)
    """
    name, equals, rest = text.rpartition("=")
    burst = "1"
    if name.endswith(",burst"):
        burst = rest
        name, equals, rest = name.removesuffix(",burst").rpartition("=")
    if not equals or not name or not burst.isdigit():
        raise Misconfigured(f"--limit is {text!r}; give NAME=RATE, as in {EXAMPLE}")
    Rate.parse(name, rest, int(burst))
    return name, rest, int(burst)


class RateLimits:
    """The limits to watch."""

    def __init__(self, locks: Coordinator, texts: Iterable[str]) -> None:
        self._limits: list[tuple[str, str, int, Limiter]] = []
        for name, rate, burst in map(parse_limit, texts):
            self._limits.append((name, rate, burst, locks.limiter(name, rate, burst=burst)))

    def look(self) -> list[dict[str, Any]]:
        """How much of each is used, and in how many seconds one more may pass."""
        return [self._look(*each) for each in self._limits]

    def _look(self, name: str, rate: str, burst: int, limiter: Limiter) -> dict[str, Any]:
        data = {"name": name, "rate": rate, "burst": burst, "problem": None, "used": None, "wait": None}
        try:
            used = limiter.used()
        except HoldfastError as error:
            return data | {"problem": str(error)}
        return data | {"used": used, "wait": max(0.0, used + 1 - burst) * Rate.parse(name, rate, burst).interval}
