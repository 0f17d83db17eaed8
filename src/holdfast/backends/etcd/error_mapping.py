"""What etcd's replies mean: an answer, a refusal that is for the flows to judge, or an error of ours."""

from __future__ import annotations

import json

from ...errors import BackendUnavailable, HoldfastError, Misconfigured, OutcomeUnknown
from .rpc import Answer, Rejected

PERMISSION_DENIED_CODE = 7
UNAUTHENTICATED_CODE = 16
OLD_TOKEN = "revision of auth store is old"
"""What etcd says, as INVALID_ARGUMENT, of a signed token that was made before a user or role was changed."""
NO_TOKEN = "user name is empty"
"""The same of a request without a token: passwords may have been switched on meanwhile."""
NO_SUCH_PATH = (404, 405, 501)
PASSED_ON = (5, 9)
"""NOT_FOUND and FAILED_PRECONDITION: for the flows to judge."""
NOT_TAKEN = ("no leader", "not capable", "too many requests", "space exceeded", "connection refused")


_decode = json.JSONDecoder().raw_decode  # what json.loads comes to, once it is sure of the encoding


class Unauthenticated(Exception):
    """The token is not (or no longer) good."""


def read(status: int, body: bytes) -> Answer | Rejected:
    """The answer to one request, or the `Rejected` that is for the flows to judge; raises all that is not."""
    if status == 200:
        try:
            answer: Answer = _decode(body.decode())[0]
        except ValueError:
            raise no_answer(body) from None
        if answer.__class__ is not dict:
            raise no_answer(body)
        return answer
    try:
        told = json.loads(body)
        if isinstance(told.get("error"), dict):  # of a stream
            told = told["error"]
        code, message = int(told.get("code", told.get("grpc_code", 0))), str(told.get("message") or told.get("error"))
    except (ValueError, AttributeError):
        if status in NO_SUCH_PATH:
            raise Misconfigured(
                f"there is no gateway of etcd ({status}: {shown(body)}); see that the address is that of a client port "
                "of etcd, and that etcd runs without --enable-grpc-gateway=false"
            ) from None
        code, message = 0, f"{status} {shown(body)}"
    if code == UNAUTHENTICATED_CODE or status == 401 or OLD_TOKEN in message or NO_TOKEN in message:
        raise Unauthenticated(message)
    if code in PASSED_ON:
        return Rejected(code, message)
    raise error_of(code, message)


def shown(body: bytes) -> str:
    return body.decode(errors="replace")[:200].strip()


def no_answer(body: bytes) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"what came is no answer of etcd: {shown(body)!r}; see that the address is that of a client port of etcd, and "
        "what stands in between"
    )


def error_of(code: int, message: str) -> HoldfastError:
    """What an error of etcd means."""
    if code == PERMISSION_DENIED_CODE or "user name" in message:
        return Misconfigured(f"etcd does not allow it: {message}; give user:password@ in the URL, and the user a role")
    if code in (3, 12):  # INVALID_ARGUMENT, UNIMPLEMENTED
        return Misconfigured(f"etcd refused the request: {message}")
    if any(word in message for word in NOT_TAKEN):
        return BackendUnavailable(f"etcd cannot take the request now: {message}")
    return OutcomeUnknown(f"etcd did not say what became of the request: {message or code}")


def accepted(reply: Answer | Rejected, what: str) -> Answer:
    """The answer to a request that etcd has no reason to refuse."""
    if isinstance(reply, Rejected):
        raise BackendUnavailable(f"etcd refused {what}: {reply.message}")
    return reply


def succeeded(reply: Answer | Rejected) -> bool:
    """Whether the conditions of a transaction held."""
    return not isinstance(reply, Rejected) and bool(reply.get("succeeded"))
