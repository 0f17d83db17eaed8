"""What a fence is given: a client or connection of the user's, looked at when the fence is made.

A wrong one (a URL, an engine, the asyncio variant of the client) is refused before anything is sent.
"""

from __future__ import annotations

from typing import Any

from ..errors import Misconfigured

FENCE_ELSEWHERE = "make the fence there, on a connection of that process, and hand it the lease's token"
"""What to do instead of pickling a fence."""


def check_client(client: Any, fence: str, wanted: str, *methods: str) -> None:
    """Raise `Misconfigured` unless the client has these methods (or can be called, if none is named)."""
    if methods:
        fits = all(callable(getattr(client, name, None)) for name in methods)
    else:
        fits = callable(client)
    if isinstance(client, type) or not fits:
        shown = type(client).__qualname__ if not isinstance(client, type) else f"the class {client.__qualname__}"
        raise Misconfigured(f"{fence} takes {wanted}, not {shown}; make one and hand it over")


def check_blocking_client(client: Any, fence: str) -> None:
    """Raise `Misconfigured` if a client of `redis.asyncio` is to block."""
    if is_asyncio(client) is True:
        raise Misconfigured(f"{fence} takes a blocking client; for {type(client).__qualname__} there is Async{fence}")


def check_asyncio_client(client: Any, fence: str) -> None:
    """Raise `Misconfigured` if a blocking client of redis-py is to be awaited."""
    if is_asyncio(client) is False:
        raise Misconfigured(f"Async{fence} takes an asyncio client; for {type(client).__qualname__} there is {fence}")


def is_asyncio(client: Any) -> bool | None:
    """Whether it is a client of `redis.asyncio`; None if it is none of redis-py at all."""
    modules = [kind.__module__ for kind in type(client).__mro__ if kind.__module__.startswith("redis.")]
    return any(".asyncio" in module for module in modules) if modules else None
