"""Telling aside: what nobody waits for, and what does no harm if it never arrives."""

from __future__ import annotations

from collections.abc import Callable

from ..._core.flow import Call, Flow
from ...errors import BackendUnavailable, Misconfigured
from .rpc import Post, Rpc

LONGEST = 1.0


def post(make: Callable[[], Rpc | None]) -> Flow[None]:
    """Tell, and do not wait."""
    try:
        yield Call(Post(make), LONGEST)
    except (BackendUnavailable, Misconfigured):
        pass  # a look, a sweep or the end of the lease will see to it


def just(rpc: Rpc) -> Rpc:
    """To be told as it is."""
    return rpc
