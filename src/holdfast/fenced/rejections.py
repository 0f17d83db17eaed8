"""Every refusal is counted and logged: one stale holder at a fence is worth a look, now.

1. The count is per process, by kind of fence and resource; a forked child counts from zero, so that the sum
   over processes is right.
2. It stays small: beyond `MAX_RESOURCES_COUNT` resources further ones are counted together under `OTHERS`.
"""

from __future__ import annotations

import logging
import os
import threading

from ..errors import FenceRejected

logger = logging.getLogger("holdfast")

MAX_RESOURCES_COUNT = 1000
OTHERS = "(others)"

_counts: dict[tuple[str, str], int] = {}
_mutex = threading.Lock()


def rejects() -> dict[tuple[str, str], int]:
    """How often a fence of this process refused a holder, by (kind, resource).

    >>> before = rejects().get(("file", "/srv/ledger"), 0)
    >>> _ = rejected("file", "/srv/ledger", 33, 34)               # what a fence does
    >>> rejects()["file", "/srv/ledger"] - before
    1
    """
    with _mutex:
        return dict(_counts)


def rejected(kind: str, resource: str, token: int, mark: int | None) -> FenceRejected:
    """Count and log one refusal; the caller raises what it gets, once nothing is changed any more."""
    with _mutex:
        key = (kind, resource)
        if key not in _counts and len(_counts) >= MAX_RESOURCES_COUNT:
            key = (kind, OTHERS)
        _counts[key] = _counts.get(key, 0) + 1
    logger.warning("the %s fence at %r refused token %d: its mark is %s", kind, resource, token, mark)
    return FenceRejected(resource, token, mark)


def _start_anew() -> None:
    global _mutex
    _mutex = threading.Lock()  # another thread may have held it when we were forked
    _counts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
