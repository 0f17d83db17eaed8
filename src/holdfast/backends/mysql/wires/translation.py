"""What the server or the network says, in holdfast's words: one place, the cause kept.

1. An error that the server answered with means that nothing was done: each procedure is one transaction, rolled back.
2. But of a statement that was killed nobody knows how far it came, and whether its transaction is open still: the
   connection is closed, so that the server rolls back what is not committed.
3. A transaction that was the victim of a deadlock (or met a row newer than its snapshot) is asked for again at once.
4. No answer at all, once a statement was sent, means that nobody knows.
"""

from __future__ import annotations

from ....errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from ..packets import Refused

DEADLOCK, TOO_NEW = 1213, 1020
AGAIN = frozenset({DEADLOCK, TOO_NEW})
TRIES = 5
PERMANENT = {
    **dict.fromkeys((1044, 1142, 1143, 1370), "grant this user what the head of `holdfast schema mysql` names"),
    **dict.fromkeys(
        (1146, 1305),
        "the lock table is gone; connect again to have it made, or run the output of `holdfast schema mysql`",
    ),
}
KILLED = frozenset({1053, 1317, 1927, 1969, 3024})
"""Interrupted, shut down or too long."""

GONE = frozenset({1290, 1792, 1836, 4031}) | KILLED
"""The session ends, or can not write any more (a primary that became a replica): dial again."""


class Silence(Exception):
    """No answer: it took too long, or the connection ended."""


def translated(error: Refused) -> HoldfastError:
    if error.code in KILLED:
        return OutcomeUnknown(f"MariaDB ended the statement: {error} ({error.code}); it may have been carried out")
    if advice := PERMANENT.get(error.code):
        return Misconfigured(f"MariaDB refused: {error} ({error.code}); {advice}")
    return BackendUnavailable(f"MariaDB refused: {error} ({error.code}); nothing was done")


def unreachable(error: Exception) -> BackendUnavailable:
    return BackendUnavailable(f"MariaDB can not be reached: {str(error).strip()}")


def unknown(what: object) -> OutcomeUnknown:
    return OutcomeUnknown(f"no reply from MariaDB: {str(what).strip()}; the statement may have been carried out")
