"""Every refusal is counted and logged (a stream of them is limited): one stale holder is worth a look, now.

The count is per process (`holdfast.observe.refusals`), and part of what `stats()` and the exporters show.
"""

from __future__ import annotations

import logging

from ..errors import FenceRejected
from ..observe.log_limit import limit_repeats
from ..observe.refusals import MAX_RESOURCES_COUNT as MAX_RESOURCES_COUNT
from ..observe.refusals import OTHERS as OTHERS
from ..observe.refusals import count_refusal, refusals, trace_refusal

logger = logging.getLogger("holdfast")
limit_repeats()


def rejects() -> dict[tuple[str, str], int]:
    """How often a fence of this process refused a holder, by (kind, resource).

    >>> before = rejects().get(("file", "/srv/ledger"), 0)
    >>> _ = rejected("file", "/srv/ledger", 33, 34)               # what a fence does
    >>> rejects()["file", "/srv/ledger"] - before
    1
    """
    return refusals()


def rejected(kind: str, resource: str, token: int, mark: int | None) -> FenceRejected:
    """Count and log one refusal; the caller raises what it gets, once nothing is changed any more."""
    count_refusal(kind, resource)
    trace_refusal(kind, resource, token, mark)
    logger.warning(
        "the %s fence at %r refused token %d: its mark is %s",
        kind,
        resource,
        token,
        mark,
        extra={"kind": "refused", "fence": kind, "resource": resource, "token": token, "mark": mark},
    )
    return FenceRejected(resource, token, mark)
