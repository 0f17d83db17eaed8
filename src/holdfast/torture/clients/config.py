"""The configuration of a client process: one argument of JSON on its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from ..history import Discipline

Failpoint: TypeAlias = Literal["after-acquire", "after-read", "before-write", "before-release"]
FAILPOINTS: tuple[Failpoint, ...] = ("after-acquire", "after-read", "before-write", "before-release")


def timeouts(ttl: float) -> tuple[float, float]:
    """Of an acquisition and of a request, in a run with this ttl."""
    return max(3.0, 4 * ttl), max(1.0, ttl)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """`aim` says how likely a client stops itself at each failpoint, in the middle of its critical section."""

    client: str
    url: str
    folder: str
    name: str
    discipline: Discipline
    ttl: float
    seed: int = 0
    namespace: str = "torture"
    timeout: float = 5.0
    request_timeout: float = 1.0
    think: float = 0.015
    pause: tuple[float, float] = (0.0, 0.0)
    """How long a pause lasts: from, to; mostly near the shorter end, where the next holder has just begun."""
    aim: dict[Failpoint, float] = field(default_factory=dict)
    body: Literal["threads", "asyncio"] = "threads"
    """Which of the two APIs it uses."""
    cancels: float = 0.0
    """How likely an acquisition is cancelled before it ends (asyncio)."""
    blocks: float = 0.0
    """How likely the event loop is blocked during a critical section, for up to twice the ttl (asyncio)."""
    forks: float = 0.0
    """How likely a holder forks without Python's hooks."""

    @property
    def leeway(self) -> float:
        """How much longer than its timeout an acquisition may take: one request to end, and one to leave the line."""
        return 2 * self.request_timeout

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> ClientConfig:
        told: dict[str, Any] = json.loads(text)
        told["pause"] = tuple(told["pause"])
        return ClientConfig(**told)
