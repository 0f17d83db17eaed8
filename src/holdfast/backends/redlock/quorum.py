"""What is known before any node is asked: of the nodes, and of every claim of one ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...model import LockSpec
from .programs import head
from .records import ms


@dataclass(frozen=True, slots=True)
class Quorum:
    """What is known of the nodes before any is asked."""

    nodes: tuple[str, ...]
    namespace: str
    cluster: str
    node_timeout: float
    longest_ttl: float
    request_timeout: float
    found_after: float = 0.0
    host: str = ""
    pid: Callable[[], int] = field(default=lambda: 0)

    @property
    def majority(self) -> int:
        return len(self.nodes) // 2 + 1


class Kept:
    """What is the same for every claim of one ask."""

    __slots__ = ("delay", "keys", "queue", "release", "span", "spec", "take", "timeout")

    def __init__(self, spec: LockSpec, keys: tuple[str, str], timeout: float, listens: str) -> None:
        self.spec = spec
        self.keys = keys
        self.timeout = timeout
        delay = ms(spec.lock_delay)
        self.span, self.delay = str(ms(spec.ttl) + delay), f"{delay:010d}"
        self.take, self.queue = head("take", keys, (self.span, "")), head("take", keys, (self.span, listens))
        self.release = head("release", keys, ())
