"""Opening connections: URLs, TLS, users and passwords, and where Sentinel says that the primary is, as redis-py has it.

redis-py connects a socket and shakes hands on it, unless we can do it ourselves (`handshake`); then the socket is
taken out of its hands and spoken on directly, because its way from a command to a reply costs more than the command.
Only what decides where and as whom to connect is taken over from a URL or a client; how its own pool behaves is not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Protocol

from ....errors import BackendUnavailable, Misconfigured
from ..resp import Error
from .handshake import can_open, open_plainly, open_plainly_async
from .pipes import Pipe, SocketPipe, TransportPipe, can_watch

WHERE = frozenset(
    {"host", "port", "path", "db", "username", "password", "credential_provider", "client_name", "protocol"}
    | {"socket_keepalive", "socket_keepalive_options", "socket_type", "driver_info", "lib_name", "lib_version"}
)

CREDENTIALS = frozenset({"WRONGPASS", "NOAUTH", "NOPERM"})


def need_redis_py() -> Any:
    try:
        import redis
    except ImportError as error:
        raise Misconfigured("redis:// needs redis-py; install it with: pip install 'holdfast[redis]'") from error
    return redis


class Dialler(Protocol):
    """Opens connections to whichever server is the primary now. `pushes`: they may speak version 3 of the protocol."""

    @property
    def pushes(self) -> bool: ...

    def dial(self, timeout: float) -> socket.socket: ...

    async def dial_async(self, timeout: float) -> Pipe: ...


@dataclass(frozen=True, slots=True)
class Server:
    """One server, by the name of redis-py's connection class and its arguments."""

    kind: str = "Connection"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return str(self.options.get("path") or f"{self.options.get('host', 'localhost')}:{self.port}")

    @property
    def pushes(self) -> bool:
        return self.options.get("protocol") != 2

    @property
    def port(self) -> int:
        return int(self.options.get("port", 6379))

    def at(self, host: str, port: int) -> Server:
        """Another server, reached in the same way."""
        return replace(self, options={**self.options, "host": host, "port": port})

    def dial(self, timeout: float) -> socket.socket:
        redis = need_redis_py()
        if can_open(self.kind, self.options):
            try:
                return open_plainly(self.options, timeout)
            except (OSError, Error) as error:
                raise refused(self.place, error) from error
        connection = self.build(redis.connection, timeout)
        try:
            connection.connect()
        except redis.RedisError as error:
            raise refused(self.place, error) from error
        opened: socket.socket = connection._sock
        connection._sock = None  # it is ours now: redis-py would close it with its connection
        return opened

    async def dial_async(self, timeout: float) -> Pipe:
        redis = need_redis_py()
        if can_open(self.kind, self.options) and can_watch():
            try:
                return SocketPipe(await open_plainly_async(self.options, timeout))
            except (OSError, Error) as error:
                raise refused(self.place, error) from error
        connection = self.build(import_module("redis.asyncio.connection"), timeout)
        try:
            async with asyncio.timeout(timeout):
                await connection.connect()
        except (redis.RedisError, TimeoutError) as error:
            raise refused(self.place, error) from error
        opened: asyncio.StreamWriter = connection._writer
        connection._reader = connection._writer = None
        return TransportPipe(opened)

    def build(self, module: Any, timeout: float) -> Any:
        """redis-py's connection, not yet connected."""
        # Whoever listens on it says HELLO for version 3 by itself.
        options = {**self.options, "protocol": 2, "socket_timeout": timeout, "socket_connect_timeout": timeout}
        try:
            return getattr(module, self.kind)(**options)
        except (TypeError, ValueError, need_redis_py().RedisError) as error:
            raise Misconfigured(f"the settings for Redis at {self.place} are not valid: {error}") from error


@dataclass(frozen=True, slots=True)
class Watched:
    """The primary of a service that sentinels watch: asked for anew with every connection."""

    service: str
    sentinels: tuple[Server, ...]
    server: Server

    @property
    def place(self) -> str:
        return f"{self.service!r} of the sentinels at {', '.join(each.place for each in self.sentinels)}"

    @property
    def pushes(self) -> bool:
        return self.server.pushes

    def dial(self, timeout: float) -> socket.socket:
        redis = need_redis_py()
        sentinel = redis.Sentinel([])
        sentinel.sentinels = [
            redis.Redis(**{**each.options, "socket_timeout": timeout, "socket_connect_timeout": timeout})
            for each in self.sentinels
        ]
        try:
            host, port = sentinel.discover_master(self.service)
        except redis.RedisError as error:
            raise refused(self.place, error) from error
        finally:
            for client in sentinel.sentinels:
                client.close()
        return self.server.at(host, port).dial(timeout)

    async def dial_async(self, timeout: float) -> Pipe:
        redis = need_redis_py()
        asyncio_redis: Any = import_module("redis.asyncio")
        sentinel = asyncio_redis.Sentinel([])
        sentinel.sentinels = [
            asyncio_redis.Redis(**{**each.options, "socket_timeout": timeout, "socket_connect_timeout": timeout})
            for each in self.sentinels
        ]
        try:
            host, port = await sentinel.discover_master(self.service)
        except redis.RedisError as error:
            raise refused(self.place, error) from error
        finally:
            for client in sentinel.sentinels:
                await client.aclose()
        return await self.server.at(host, port).dial_async(timeout)


def refused(place: str, error: Exception) -> Exception:
    """Why there is no connection: wrong credentials are the user's to mend, anything else may pass."""
    redis = need_redis_py()
    said = str(error)
    if isinstance(error, redis.AuthenticationError | redis.exceptions.AuthorizationError) or (
        isinstance(error, Error) and (error.code in CREDENTIALS or "AUTH" in said)
    ):
        return Misconfigured(f"Redis at {place} refused the user or password: {error}")
    return BackendUnavailable(f"Redis at {place} can not be reached: {error}; is it running, and reachable from here?")
