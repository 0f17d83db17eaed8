"""The options that every lock takes, to the recipe or to the call."""

from __future__ import annotations

from typing import TypedDict


class Options(TypedDict, total=False):
    """How a lock is asked for and kept. Times are in seconds."""

    ttl: float
    """For how long a grant is good without a renewal."""
    timeout: float | None
    """How long to wait; None is for ever, 0 is one try."""
    max_hold: float | None
    """The longest hold: then it is lost, however well renewal goes."""
    lock_delay: float
    """For how long the name stays closed after a hold ended uncleanly; for resources without a fence."""
    hold_at_least: float
    """Released earlier, the name stays closed until then; for jobs under clock skew."""
    fair: bool
    """False: may be granted out of turn when it fits."""
    margin: float | None
    """How long before the end of validity the lease counts as lost."""
    renew: bool
    """False: the keeper does not renew it; it ends with its ttl."""
