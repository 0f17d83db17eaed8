"""Requests that meet a fault between a register and the real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def faulty(send: Callable[[], Any], fault: str, lost: Exception, between: Callable[[], object] = str) -> Any:
    """One request, with a fault: "after" and "before" it is carried out, or "twice", with something in between."""
    if fault == "before":
        raise lost
    reply = send()
    if fault == "after":
        between()
        raise lost
    if fault == "twice":
        between()
        reply = send()
    return reply
