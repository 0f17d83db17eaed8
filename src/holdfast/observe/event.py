"""What happened, as data. `on_event=` of `connect` is called with an `Event` for each step of a lease's life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .complaint import complain


@dataclass(frozen=True, slots=True)
class Event:
    """One step. `kind` is one of acquired, timed_out, released, unreleased, jeopardy, recovered, asked, lost.

    `unreleased`: the engine could not be told of a release; it is told in the background, or the ttl ends the hold.
    `seconds` is how long it took: waited for `acquired` and `timed_out`, held for `released` and `lost`.
    """

    kind: str
    name: str
    owner: str
    token: int = 0
    seconds: float = 0.0
    reason: str = ""
    ttl: float = 0.0


def guarded(emit: Callable[[Event], None]) -> Callable[[Event], None]:
    """A listener that never disturbs what it listens to."""

    def tell(event: Event) -> None:
        try:
            emit(event)
        except Exception:  # noqa: BLE001  it is not our code
            complain("the listener of events raised at %r", event)

    return tell
