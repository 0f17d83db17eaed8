"""What a watcher keeps of a line: steps of the engine, and places as they were seen. Times in engine microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast._core.line import Place
from holdfast.backends.execute import us
from holdfast.backends.queue_backend import patience
from holdfast.model import Claim


@dataclass(frozen=True, slots=True)
class Step:
    """One verb, carried out on one line. `heeded` are the owners whose words counted, with the tokens they gave."""

    deed: Literal["take", "renew", "release", "evict"]
    heeded: Mapping[str, int] = field(default_factory=dict)
    linger: int = 0


class Seen:
    """A place as it was seen, with what its claim asked for. `word` is when its owner was last heard and heeded."""

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
        """In which order they came."""
        self.word = now
        self.expires = 0
        self.evicted_at = 0
        self.lingers = False
        self.token = 0
        self.visit = 0

    def held_until(self) -> int:
        return self.evicted_at or self.word + self.bound

    def closed_until(self) -> int:
        """For how long it takes up its weight."""
        return self.held_until() + (0 if self.lingers else self._delay)
