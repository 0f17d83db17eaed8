"""Where and who we are: what the world tells the flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Of one coordinator."""

    namespace: str
    host: str
    pid: Callable[[], int]
    calendar_us: Callable[[], int]
    request_timeout: float
