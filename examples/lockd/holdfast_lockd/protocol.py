"""Requests and replies as bytes: pure, so that it can be tested without a connection.

The backend (`holdfast.engine.QueueBackend`) yields the requests that are matched here; each becomes a line of JSON.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.engine import Allow, Evict, QueueReply, QueueRequest, Release, Renew, Survey, Take, Taken, patience
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim, ClaimView, LockView


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


class Decoder:
    """Bytes in, messages out, however the bytes were cut."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


def request_message(request: QueueRequest, host: str, pid: int) -> dict[str, Any]:
    match request:
        case Take(claims=claims, queue=queue):
            return {"do": "take", "queue": queue, "claims": [_claim(claim, host, pid) for claim in claims]}
        case Renew(claims=claims):
            return {"do": "renew", "holds": [[claim.spec.name, claim.owner, claim.token] for claim in claims]}
        case Release(claim=claim, linger=linger):
            return {"do": "release", "name": claim.spec.name, "owner": claim.owner, "linger": linger}
        case Survey(prefix=prefix, exact=exact):
            return {"do": "survey", "prefix": prefix, "exact": exact}
        case Evict(name=name, token=token):
            return {"do": "evict", "name": name, "token": token}
        case Allow(name=name, interval=interval, burst=burst, cost=cost, reserve=reserve):
            limits = {"interval": interval, "burst": burst, "cost": cost, "reserve": reserve}
            return {"do": "allow", "name": name, **limits}
    raise _not_kept(request)


def _claim(claim: Claim, host: str, pid: int) -> dict[str, Any]:
    spec = claim.spec
    return {
        "name": spec.name,
        "capacity": spec.capacity,
        "owner": claim.owner,
        "weight": spec.weight,
        "fair": spec.fair,
        "ttl": spec.ttl,
        "patience": patience(spec),
        "delay": spec.lock_delay,
        "actor": claim.actor,
        "mode": spec.mode,
        "host": host,
        "pid": pid,
    }


def read_reply(message: dict[str, Any]) -> Any:
    if "error" in message:
        raise BackendUnavailable(f"lockd refused a request: {message['error']}")
    return message["reply"]


def reply_to(request: QueueRequest, reply: Any) -> QueueReply:
    """The reply as the backend expects it."""
    match request:
        case Take():
            return [Taken(**taken) for taken in reply]
        case Survey():
            return [_view(view) for view in reply]
        case Allow():
            allowed, seconds = reply
            return allowed, seconds
        case Renew():
            return [str(said) for said in reply]
        case Release() | Evict():
            return bool(reply)
    raise _not_kept(request)


def _not_kept(request: object) -> TypeError:
    """Requests about records come to engines whose backend is a `RecordBackend`: this one has none."""
    return TypeError(f"lockd keeps no records: {request!r}")


def _view(view: dict[str, Any]) -> LockView:
    claims = [ClaimView(**claim) for claim in view["claims"]]
    holders = tuple(claim for claim in claims if claim.token is not None)
    waiters = tuple(claim for claim in claims if claim.token is None)
    return LockView(view["name"], view["capacity"], holders, waiters)
