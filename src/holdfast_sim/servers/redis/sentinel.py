"""A sentinel: tells where the primary of a service is, as far as it has heard.

It is a server of its own, with few commands (`RedisServer(…, sentinel=Sentinel())`). Several sentinels are several
servers; each is told of a fail-over by itself, so that one may be behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .protocol import NULL_ARRAY, Reply

if TYPE_CHECKING:
    from .server import RedisServer


class Sentinel:
    def __init__(self) -> None:
        self._services: dict[bytes, tuple[str, int]] = {}

    def watch(self, service: str, primary: RedisServer) -> None:
        """From now on it says that the service's primary is this one."""
        self._services[service.encode()] = primary.address

    def forget(self, service: str) -> None:
        self._services.pop(service.encode(), None)

    def address_of(self, service: bytes) -> Reply:
        found = self._services.get(service)
        return NULL_ARRAY if found is None else [found[0].encode(), b"%d" % found[1]]
