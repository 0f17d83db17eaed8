"""Opening connections to one node: URLs, TLS, users and passwords.

redis-py connects a socket and shakes hands on it, unless we can do it ourselves (`handshake`); then the socket is
taken out of its hands and spoken on directly, because its way from a command to a reply costs more than the command.

To `dial` blocks, and a resolver may make it block for longer than its timeout. So it is done beside whoever needs the
connection (`beside`); for asyncio by `open_pipe`.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from importlib import import_module
from typing import Any

from .....errors import BackendUnavailable, Misconfigured
from ....redis.resp import Error, NotRedis
from ....redis.server import Server, need_redis_py
from .beside import Job
from .handshake import can_open, open_plainly
from .pipes import Pipe, SocketPipe, TransportPipe, can_watch

CREDENTIALS = frozenset({"WRONGPASS", "NOAUTH", "NOPERM"})


class Dialler:
    """Opens connections to one node."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.place = server.place

    def dial(self, timeout: float) -> socket.socket:
        redis = need_redis_py()
        if can_open(self._server.kind, self._server.options):
            try:
                return open_plainly(self._server.options, timeout)
            except (OSError, Error) as error:
                raise refused(self.place, error) from error
        connection = self._build(redis.connection, timeout)
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
        connection = self._build(import_module("redis.asyncio.connection"), timeout)
        try:
            async with asyncio.timeout(timeout):
                await connection.connect()
        except (redis.RedisError, TimeoutError) as error:
            raise refused(self.place, error) from error
        opened: asyncio.StreamWriter = connection._writer
        connection._reader = connection._writer = None
        return TransportPipe(opened)

    def _build(self, module: Any, timeout: float) -> Any:
        """redis-py's connection, not yet connected."""
        options = {**self._server.options, "protocol": 2, "socket_timeout": timeout, "socket_connect_timeout": timeout}
        return getattr(module, self._server.kind)(**options)


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
