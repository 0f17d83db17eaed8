"""What the server or libpq says, in holdfast's words: one place, the cause kept.

An error that the server answered with means that nothing was done: each statement is a transaction of its own. No
answer at all, once a statement was sent, means that nobody knows.
"""

from __future__ import annotations

from ....errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from ..greeting import Refused

PERMANENT = {
    "42501": "grant this role what the head of `holdfast schema postgresql` names",
    "42P01": "the lock table is gone; connect again to have it made, or run the output of `holdfast schema postgresql`",
    "42883": "functions are gone; connect again to have them made, or run the output of `holdfast schema postgresql`",
    "0A000": "ALTER ROLE … SET default_transaction_isolation = 'read committed'",
}
GONE = frozenset({"25006", "57P01", "57P02", "57P03", "57P04", "57P05"})
"""The session ends or can not write any more (a primary that became a standby): dial again."""


def translated(error: Refused) -> HoldfastError:
    if advice := PERMANENT.get(error.state):
        return Misconfigured(f"PostgreSQL refused: {error} ({error.state}); {advice}")
    return BackendUnavailable(f"PostgreSQL refused: {error} ({error.state}); nothing was done")


def unreachable(error: Exception) -> BackendUnavailable:
    return BackendUnavailable(f"PostgreSQL can not be reached: {str(error).strip()}")


def unknown(what: object) -> OutcomeUnknown:
    return OutcomeUnknown(f"no reply from PostgreSQL: {str(what).strip()}; the statement may have been carried out")
