"""The time that a take has."""

from __future__ import annotations


def time_for(queue: bool, within_s: float | None, request_timeout_s: float) -> float | None:
    """For all requests of a take: what its caller says, or for a single try as much as for one request."""
    return within_s if queue or within_s is not None else request_timeout_s
