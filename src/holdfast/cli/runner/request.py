"""The request to `holdfast run`, checked before anything starts.

The command must be gone before the lease's validity ends. So the lease counts as lost a *margin* early, which is the
grace between TERM and KILL and an allowance for detection and for the kernel; and a margin must leave half of the ttl.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Misconfigured
from ...model import LockSpec

DEFAULT_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call of `holdfast run`. Times are in seconds."""

    name: str
    command: tuple[str, ...]
    url: str
    namespace: str = "holdfast"
    ttl: float = 30.0
    timeout: float | None = None
    skip: bool = False
    """Exit with 0 if the lock is not acquired."""
    max_hold: float | None = None
    hold_at_least: float = 0.0
    lock_delay: float = 0.0
    mode: str = "lock"
    """lock, read, write or permit."""
    permits: int = 1
    grace: float = DEFAULT_GRACE_S
    request_timeout: float = 5.0
    quiet: bool = False
    """Print only errors."""
    trace: bool = False
    """Make spans, and hand their context to the command."""

    def __post_init__(self) -> None:
        LockSpec(  # checks them
            self.name, self.ttl, 1, self.permits, timeout=self.timeout, max_hold=self.max_hold,
            hold_at_least=self.hold_at_least, lock_delay=self.lock_delay,
        )  # fmt: skip
        if self.ttl <= 2 * self.margin:
            raise Misconfigured(
                f"--grace {self.grace:g} is too long for --ttl {self.ttl:g}: the command must be gone before the "
                f"lease ends; use --ttl {least_ttl(self.grace):g} or more, or a shorter --grace"
            )

    @property
    def margin(self) -> float:
        """How long before the end of validity the command is told to stop."""
        return self.grace + allowance(self.ttl)


def allowance(ttl: float) -> float:
    """The time to detect the loss, and for the kernel to end what was killed."""
    return min(0.5, 0.05 * ttl)


def default_grace(ttl: float) -> float:
    """A fifth of the ttl, at most 5 s."""
    return min(DEFAULT_GRACE_S, ttl / 5)


def least_ttl(grace: float) -> float:
    """A round ttl that leaves room for this grace."""
    ttl = 2.0 * grace
    while ttl <= 2 * (grace + allowance(ttl)):
        ttl += max(0.1, round(ttl / 20, 1))
    return round(ttl, 1)
