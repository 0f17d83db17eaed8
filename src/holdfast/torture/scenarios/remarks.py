"""What the numbers of a telling do not say, in a few words."""

from __future__ import annotations

from .model import Telling


def whether_b_came_in(telling: Telling) -> str:
    """The second one took over, or was kept out until the first let go."""
    match telling.errors.get("B account"):
        case "NotAcquired":
            return "the next one has to wait until the first lets go"
        case "BackendUnavailable" | "OutcomeUnknown":
            return "the next one is refused for as long as the engine cannot vouch for its memory"
    return ""
