"""What happened, as data. `on_event=` of `connect` is called with an `Event` for each step of a lease's life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .log_exception import log_exception


@dataclass(frozen=True, slots=True)
class Event:
    """One step. `kind` is one of acquired, timed_out, failed, released, unreleased, jeopardy, recovered, asked, lost.

    `failed`: the engine could not be asked; `reason` says why, as it does for `jeopardy`, `lost` and `unreleased`.
    `unreleased`: the engine could not be told of a release; it is told in the background, or the ttl ends the hold.
    `seconds` is how long it took: waited for `acquired`, `timed_out` and `failed`, held for all that comes later.
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
            log_exception("the listener of events raised at %r", event)

    return tell
