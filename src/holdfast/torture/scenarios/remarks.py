"""Remarks on an outcome: what its numbers do not say."""

from __future__ import annotations

from .model import ScenarioOutcome


def whether_b_came_in(outcome: ScenarioOutcome) -> str:
    """Whether the second client took over, or had to wait until the first released."""
    match outcome.errors.get("B account"):
        case "NotAcquired":
            return "the next one has to wait until the first lets go"
        case "BackendUnavailable" | "OutcomeUnknown":
            return "the next one is refused for as long as the engine cannot vouch for its memory"
    return ""
