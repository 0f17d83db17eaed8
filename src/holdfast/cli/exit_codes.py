"""The exit codes of `holdfast`, one for each outcome that a script may need to distinguish.

`holdfast run` passes the command's own code through, and 128 + N when signal N ended it, as a shell does. Its own
codes are those of sysexits(3) where one fits, because commands seldom use them.
"""

from __future__ import annotations

from ..errors import (
    BackendUnavailable,
    DeadlockDetected,
    HoldfastError,
    LeaseLost,
    Misconfigured,
    NotAcquired,
)

OK = 0
FAILED = 1
"""`evict` found nothing to evict; `demo` did not show what it should."""
USAGE = 64
"""A bad option, name or URL; nothing was started."""
UNAVAILABLE = 69
"""The engine could not be reached."""
INTERNAL = 70
"""A bug in holdfast; `--debug` shows where."""
OUTPUT = 74
"""What was to be printed cannot be written: the disk is full."""
NOT_ACQUIRED = 75
"""The lock was not granted in time (or at once, with `--busy fail`); the command was not started."""
LOST = 76
"""The lease was lost before the command ended; the command was stopped."""
INCOMPLETE = 78
"""The extra `holdfast[cli]` is not installed."""
NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNALLED = 128
"""Plus the number of the signal."""

_BY_ERROR: tuple[tuple[type[HoldfastError], int], ...] = (
    (NotAcquired, NOT_ACQUIRED),
    (DeadlockDetected, NOT_ACQUIRED),
    (LeaseLost, LOST),
    (BackendUnavailable, UNAVAILABLE),
    (Misconfigured, USAGE),
)


def code_of(error: HoldfastError) -> int:
    """The exit code of an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAILED)
