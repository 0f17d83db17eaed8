"""holdfast: distributed locks with fencing tokens, one API over the engines people already run.

>>> import holdfast
>>> with holdfast.connect("memory://doc") as locks:
...     with locks.lock("orders/99999", ttl=10, timeout=5) as lease:
...         lease.token > 0
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from .errors import (
    AttemptFailed,
    AttemptInDoubt,
    AttemptInProgress,
    BackendUnavailable,
    DeadlockDetected,
    FenceRejected,
    HoldfastError,
    InboxFull,
    LeaseLost,
    MessageFailed,
    Misconfigured,
    NoAnswer,
    NotAcquired,
    OutcomeUnknown,
    PayloadMismatch,
)
from .model import ClaimView, LockView, Predecessor, Promises, Sequencer, State
from .observe.event import Event
from .observe.histogram import Histogram
from .recipes.actor_record import ActorView, DeadLetter
from .recipes.names import Name
from .recipes.once_record import AttemptView, Completed
from .recipes.options import Options
from .recipes.partition_spec import MemberView
from .sync.activation import Actor
from .sync.actor_system import ActorSystem
from .sync.attempt import Attempt
from .sync.coordinator import Coordinator
from .sync.election import Election
from .sync.lease import Lease
from .sync.limiter import Limiter
from .sync.lock import Lock
from .sync.multi import Leases, LockAll
from .sync.once import Once
from .sync.partitions import Partitions
from .sync.recovery import Recovery, RecoveryCase
from .sync.rwlock import RWLock

if TYPE_CHECKING:
    from . import aio as aio
    from . import fenced as fenced
    from .observe.stats import FamilyStats as FamilyStats
    from .observe.stats import LimitVerdict as LimitVerdict
    from .observe.stats import LockStats as LockStats
    from .signals import release_on_signals as release_on_signals

__version__ = "0.1.0"

__all__ = [
    "Actor",
    "ActorSystem",
    "ActorView",
    "Attempt",
    "AttemptFailed",
    "AttemptInDoubt",
    "AttemptInProgress",
    "AttemptView",
    "BackendUnavailable",
    "ClaimView",
    "Completed",
    "Coordinator",
    "DeadLetter",
    "DeadlockDetected",
    "Election",
    "Event",
    "FamilyStats",
    "FenceRejected",
    "Histogram",
    "HoldfastError",
    "InboxFull",
    "Lease",
    "LeaseLost",
    "Leases",
    "LimitVerdict",
    "Limiter",
    "Lock",
    "LockAll",
    "LockStats",
    "LockView",
    "MemberView",
    "MessageFailed",
    "Misconfigured",
    "Name",
    "NoAnswer",
    "NotAcquired",
    "Once",
    "Options",
    "OutcomeUnknown",
    "Partitions",
    "PayloadMismatch",
    "Predecessor",
    "Promises",
    "RWLock",
    "Recovery",
    "RecoveryCase",
    "Sequencer",
    "State",
    "aio",
    "connect",
    "fenced",
    "release_on_signals",
]


def connect(
    url: str | object | None = None,
    *,
    namespace: str = "holdfast",
    ttl: float = 30.0,
    timeout: float | None = None,
    require: Iterable[str] = (),
    request_timeout: float = 5.0,
    on_event: Callable[[Event], None] | None = None,
    family: Callable[[str], str] | None = None,
) -> Coordinator:
    """Connect to an engine: `url` (or a client of the user's own, for Redis), or `HOLDFAST_URL`, or the embedded
    file of this user.

    `ttl` and `timeout` are what recipes use unless they are told otherwise. `require` names promises that the engine
    must keep ("fencing", "linearizable", "durable", "shared", "counting", "records"); `Misconfigured` if it
    cannot. `on_event` is called with each `Event`; `family` with a name, for what it is counted under (`stats`).
    """
    from .settings import Settings

    settings = Settings(url, namespace, ttl, timeout, require, request_timeout, on_event, family)
    engine = settings.engine()
    locks = Coordinator(engine, ttl, timeout, on_event, family)
    try:
        settings.demand(engine.backend)
    except BaseException:
        locks.close()
        raise
    return locks


def __getattr__(name: str) -> object:
    if name in ("aio", "fenced"):  # imported by those who use them
        from importlib import import_module

        return import_module(f".{name}", __name__)
    if name in ("FamilyStats", "LimitVerdict", "LockStats"):
        from .observe import stats

        return getattr(stats, name)
    if name == "release_on_signals":
        from .signals import release_on_signals

        return release_on_signals
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
