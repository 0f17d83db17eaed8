"""What is known before any node is asked: of the nodes, and of every claim with the same options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .programs import parts
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
    """What is the same for every claim with these options; all but the name and the claim itself."""

    __slots__ = ("delay", "queue", "span", "take", "timeout")

    def __init__(self, ttl: float, lock_delay: float, timeout: float, marks: str, listens: str) -> None:
        self.timeout = timeout
        delay = ms(lock_delay)
        self.span, self.delay = str(ms(ttl) + delay), f"{delay:010d}"
        self.take, self.queue = parts("take", marks, self.span, ""), parts("take", marks, self.span, listens)
