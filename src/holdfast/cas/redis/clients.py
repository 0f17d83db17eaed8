"""The user's client of redis-py: what it must be, and bytes out of what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import Misconfigured
from ...fenced.clients import check_client

WANTED = "a client of redis-py, as from redis.Redis.from_url(…)"


def check_redis_client(client: Any, register: str) -> Any:
    """The client, or `Misconfigured`."""
    check_client(client, register, WANTED, "register_script", "execute_command", "get_encoder")
    if any(kind.__name__ in ("Pipeline", "ClusterPipeline") for kind in type(client).__mro__):
        raise Misconfigured(f"{register} takes {WANTED}, not a pipeline, which answers nothing before it is executed")
    return client


def bytes_of(client: Any) -> Callable[[object], bytes]:
    """A function that gives bytes also where the client decodes its replies, in the client's own encoding."""

    def to_bytes(reply: object) -> bytes:
        return reply if isinstance(reply, bytes) else bytes(client.get_encoder().encode(reply))

    return to_bytes
