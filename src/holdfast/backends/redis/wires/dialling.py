"""Opening connections: URLs, TLS, users and passwords, and where Sentinel says that the primary is.

redis-py connects a socket and shakes hands on it, unless we can do it ourselves (`handshake`); then the socket is
taken out of its hands and spoken on directly, because its way from a command to a reply costs more than the command.
Only what decides where and as whom to connect is taken over from a URL or a client; how its own pool behaves is not.

To `dial` blocks, and a resolver may make it block for longer than its timeout. So it is done beside whoever needs the
connection (`beside`); for asyncio by `open_pipe`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from .... import clock
from ....errors import BackendUnavailable, Misconfigured
from ..resp import Error, NotRedis, command
from .beside import Job, first
from .handshake import can_open, open_plainly
from .link import Link
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

    @property
    def place(self) -> str:
        """Where, as it is shown to users."""
        ...

    def dial(self, timeout: float) -> socket.socket: ...

    async def dial_async(self, timeout: float) -> Pipe: ...


@dataclass(frozen=True, slots=True)
class Server:
    """One server, by the name of redis-py's connection class and its arguments, a password among them."""

    kind: str = "Connection"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

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
        if can_watch():
            return await open_pipe(self, timeout)
        redis = need_redis_py()
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
        """Through whichever sentinel is the first to lead to a server: one that hangs, or is behind, costs a moment."""
        end = clock.now() + timeout
        through = [partial(self._dial_through, sentinel, end) for sentinel in self.sentinels]
        try:
            return first(through, timeout, socket.socket.close)
        except TimeoutError as error:
            raise refused(self.place, error) from error

    def _dial_through(self, sentinel: Server, end: float) -> socket.socket:
        host, port = self._ask(sentinel, end)
        return self.server.at(host, port).dial(end - clock.now())

    def _ask(self, sentinel: Server, end: float) -> tuple[str, int]:
        link = Link(sentinel.dial(end - clock.now()))
        try:
            reply = link.exchange(command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service), end - clock.now())
        except OSError as error:
            raise refused(sentinel.place, error) from error
        finally:
            link.close()
        if isinstance(reply, Error):
            raise refused(sentinel.place, reply)
        if not reply:
            raise BackendUnavailable(
                f"the sentinel at {sentinel.place} knows no service {self.service!r}; is it the name in its settings?"
            )
        return reply[0].decode(), int(reply[1])

    async def dial_async(self, timeout: float) -> Pipe:
        if can_watch():
            return await open_pipe(self, timeout)
        end = clock.now() + timeout
        trouble: Exception = BackendUnavailable(f"Redis at {self.place} has no sentinels")
        for sentinel in self.sentinels:
            try:
                host, port = await Job(partial(self._ask, sentinel, end)).wait_async(end - clock.now())
                return await self.server.at(host, port).dial_async(end - clock.now())
            except OSError as error:
                trouble = error
        raise refused(self.place, trouble) from trouble


async def open_pipe(dialler: Dialler, timeout: float) -> Pipe:
    """Dial beside, and have this loop watch the connection. Nothing is left open if the task is cancelled."""
    job = Job(partial(dialler.dial, timeout), socket.socket.close)
    try:
        sock = await job.wait_async(timeout)
    except TimeoutError as error:
        raise refused(dialler.place, error) from error
    return SocketPipe(sock)


def refused(place: str, error: Exception) -> Exception:
    """Why there is no connection: wrong credentials are the user's to mend, anything else may pass."""
    if isinstance(error, BackendUnavailable | Misconfigured):
        return error
    redis = need_redis_py()
    said = str(error) or type(error).__name__
    if isinstance(error, redis.AuthenticationError | redis.exceptions.AuthorizationError) or (
        isinstance(error, Error) and (error.code in CREDENTIALS or "AUTH" in said)
    ):
        return Misconfigured(f"Redis at {place} refused the user or password: {said}")
    if isinstance(error, NotRedis | redis.exceptions.InvalidResponse):
        return Misconfigured(f"what answers at {place} is not Redis: {said}; check the host and the port")
    return BackendUnavailable(f"Redis at {place} cannot be reached: {said}; is it running, and reachable from here?")
