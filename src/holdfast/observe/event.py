"""What happened, as data. `on_event=` of `connect` is called with an `Event` for each step of a lease's life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .log_exception import log_exception


@dataclass(frozen=True, slots=True)
class Event:
    """One step. `kind` is one of acquired, timed_out, failed, deadlock, released, unreleased, jeopardy, recovered,
    asked, lost, refused. Renewals, and that the engine is out of reach and back, are counted and logged, not told.

    `failed`: the engine could not be asked; `reason` says why, as it does for `deadlock`, `jeopardy`, `lost` and
    `unreleased`.
    `unreleased`: the engine could not be told of a release; it is told in the background, or the ttl ends the hold.
    `refused`: an attempt (`once`) or an actor came too late to write; `reason` names the token that has taken over.
    `seconds` is how long it took: waited for `acquired`, `timed_out`, `failed` and `deadlock`, held for all others.
    `at_once`: whether it was granted without a wait. `family`: what the name is counted under. `left`: the validity, in
    seconds, that was left when a renewal was answered (in logs).
    """

    kind: str
    name: str
    owner: str
    token: int = 0
    seconds: float = 0.0
    reason: str = ""
    ttl: float = 0.0
    family: str = ""
    at_once: bool = True
    left: float = 0.0


def guarded(emit: Callable[[Event], None]) -> Callable[[Event], None]:
    """A listener that never disturbs what it listens to."""

    def tell(event: Event) -> None:
        try:
            emit(event)
        except Exception:  # noqa: BLE001  it is not our code
            log_exception("the listener of events raised at %r", event)

    return tell
