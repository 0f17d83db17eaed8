"""What happened, as data. `on_event=` of `connect` is called with an `Event` for each step of a lease's life."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One step. `kind` is one of acquired, timed_out, released, jeopardy, recovered, lost.

    `seconds` is how long it took: waited for `acquired` and `timed_out`, held for `released` and `lost`.
    """

    kind: str
    name: str
    owner: str
    token: int = 0
    seconds: float = 0.0
    reason: str = ""
    ttl: float = 0.0
