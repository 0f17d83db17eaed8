"""What the server's refusals mean to a user, in one place."""

from __future__ import annotations

from ...errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from .ops import AUTH_FAILED, CONNECTION_LOST, NO_AUTH, SESSION_EXPIRED, SESSION_MOVED, UNIMPLEMENTED, Failure

_NAMES = {
    -1: "SystemError", -2: "RuntimeInconsistency", -3: "DataInconsistency", -4: "ConnectionLoss",
    -5: "MarshallingError", -6: "Unimplemented", -7: "OperationTimeout", -8: "BadArguments", -100: "APIError",
    -101: "NoNode", -102: "NoAuth",
    -103: "BadVersion", -108: "NoChildrenForEphemerals", -110: "NodeExists", -111: "NotEmpty", -112: "SessionExpired",
    -113: "InvalidCallback", -114: "InvalidACL", -115: "AuthFailed", -118: "SessionMoved", -119: "NotReadOnly",
    -122: "RequestTimeout", -125: "QuotaExceeded", -127: "Throttled",
}  # fmt: skip


def refused(failure: Failure, doing: str) -> HoldfastError:
    """The error to raise for a code that the flow has no use for."""
    name = _NAMES.get(failure.code, str(failure.code))
    if failure.code in (NO_AUTH, AUTH_FAILED):
        return Misconfigured(
            f"ZooKeeper does not allow {doing} ({name}); give a user and password in the URL, or look at the ACLs"
        )
    if failure.code == UNIMPLEMENTED:
        return Misconfigured(f"this ZooKeeper cannot do what {doing} needs ({name}); 3.5.3 or later is needed")
    if failure.code in (SESSION_EXPIRED, SESSION_MOVED, CONNECTION_LOST):
        return OutcomeUnknown(f"the session with ZooKeeper changed while {doing} ({name}); try again")
    return BackendUnavailable(f"ZooKeeper refused {doing}: {name}")


def unknown(doing: str, timeout: float) -> OutcomeUnknown:
    return OutcomeUnknown(f"no answer from ZooKeeper {doing} within {timeout:.3g} s")
