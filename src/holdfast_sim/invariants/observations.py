"""What the queue invariants remember of a line: steps of the engine, and places as they were observed.

Times are microseconds of the engine's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast._core.line import Place
from holdfast.backends.execute import us
from holdfast.backends.queue_backend import patience
from holdfast.model import Claim


@dataclass(frozen=True, slots=True)
class QueueStep:
    """One request, executed on one line. `accepted`: the owners whose request was accepted, with their tokens."""

    verb: Literal["take", "renew", "release", "evict"]
    accepted: Mapping[str, int] = field(default_factory=dict)
    linger: int = 0


class ObservedPlace:
    """A place as it was observed, with its claim. `word` is when a request of its owner was last accepted."""

    __slots__ = (
        "_delay", "bound", "evicted_at", "expires", "fair", "lingers", "number", "owner", "patience", "place",
        "token", "visit", "weight", "word",
    )  # fmt: skip

    def __init__(self, place: Place, claim: Claim, number: int, now: int) -> None:
        spec = claim.spec
        self.place = place
        self.owner = claim.owner
        self.weight = spec.weight
        self.fair = spec.fair
        self.patience = us(patience(spec))
        self.bound = max(us(spec.ttl), self.patience)
        self._delay = us(spec.lock_delay)
        self.number = number
        """Its rank in the order of arrival."""
        self.word = now
        self.expires = 0
        self.evicted_at = 0
        self.lingers = False
        self.token = 0
        self.visit = 0

    def held_until(self) -> int:
        return self.evicted_at or self.word + self.bound

    def closed_until(self) -> int:
        """Until when its weight counts."""
        return self.held_until() + (0 if self.lingers else self._delay)
