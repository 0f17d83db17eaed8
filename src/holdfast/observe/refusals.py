"""The refusals at the fences of this process, counted by kind of fence and resource.

1. A forked child counts from zero, so that the sum over processes is right.
2. It stays small: beyond `MAX_RESOURCES_COUNT` resources further ones are counted together under `OTHERS`.
"""

from __future__ import annotations

import os
import threading

from .observer import Observer

MAX_RESOURCES_COUNT = 1000
OTHERS = "(others)"

_counts: dict[tuple[str, str], int] = {}
_mutex = threading.Lock()


def refusals() -> dict[tuple[str, str], int]:
    """How often a fence of this process refused a holder, by (kind, resource)."""
    with _mutex:
        return dict(_counts)


def count_refusal(kind: str, resource: str) -> None:
    """One more."""
    with _mutex:
        key = (kind, resource)
        if key not in _counts and len(_counts) >= MAX_RESOURCES_COUNT:
            key = (kind, OTHERS)
        _counts[key] = _counts.get(key, 0) + 1


def trace_refusal(kind: str, resource: str, token: int, mark: int | None) -> None:
    """Make a span of a refusal, where tracing is on."""
    if Observer.spans is not None:
        Observer.spans.refused(kind, resource, token, mark)


def _start_anew() -> None:
    global _mutex
    _mutex = threading.Lock()  # another thread may have held it when we were forked
    _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
