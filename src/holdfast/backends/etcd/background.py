"""What nobody waits for, and what does no harm if it never arrives."""

from __future__ import annotations

from collections.abc import Callable

from ..._core.flow import Call, Flow
from ...errors import BackendUnavailable, Misconfigured
from .rpc import Post, Rpc

LONGEST_S = 1.0


def post(make: Callable[[], Rpc | None]) -> Flow[None]:
    """Tell, and do not wait."""
    try:
        yield Call(Post(make), LONGEST_S)
    except (BackendUnavailable, Misconfigured):
        pass  # a look, a sweep or the end of the lease will see to it


def unchanged(rpc: Rpc) -> Rpc:
    """Return this RPC unchanged."""
    return rpc
