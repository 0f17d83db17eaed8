"""A bad network, made to order: a TCP proxy in front of every server of a URL.

`faults` stands above a wire, so it cannot say anything about dialling, sessions, pushes and time-outs. A `Network`
stands below it: a coordinator that is connected by `Network.url` talks TCP to these proxies.

1. What a *silent* network accepts it does not carry, neither on old connections nor on new ones, and it loses nothing:
   what was sent arrives once all is well again, also what was sent by somebody who has given up since.
2. A *mute* network carries requests and swallows replies. A connection that has lost a reply carries none any more;
   it is reset once all is well again, because TCP cannot go on after a gap.
3. `reset` ends all connections by RST; `end_idle` ends them by FIN, after what was sent has arrived, as a server
   does with a connection that was idle for too long.
4. An order is in force when its method returns. All proxies live in one thread with a loop of its own, so a loop
   that is blocked by what is tested does not stop the network.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

PIECE_BYTES = 1 << 16
ORDER_TIMEOUT_S = 30.0
HOST = "127.0.0.1"
ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:,\[\]]+):(?P<port>\d+)")


class Network:
    """The way to all servers of a URL. Made by `start`; closed when it is no longer needed."""

    def __init__(self) -> None:
        self.url = ""
        """Leads to the same servers, through this network."""
        self._loop: asyncio.AbstractEventLoop
        self._mute = False
        self._dribbling = False
        self._connections: set[RelayedConnection] = set()
        self._servers: list[asyncio.Server] = []
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._over = asyncio.Event()
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._run, name="holdfast-testing-network", daemon=True)

    @classmethod
    def start(cls, url: str) -> Network:
        """A network in front of every host of this URL; `url` leads through it."""
        network = cls()
        network._thread.start()
        network._loop = network._started.result(ORDER_TIMEOUT_S)
        network.url = rewritten(url, lambda host, port: (HOST, network._listen(host, port)))
        return network

    def _run(self) -> None:
        async def live() -> None:
            self._started.set_result(asyncio.get_running_loop())
            await self._over.wait()
            for server in self._servers:
                server.close()
            while self._connections:
                for connection in self._connections:
                    connection.reset()
                await asyncio.sleep(0)

        asyncio.run(live())  # which ends whatever is still being carried

    def _listen(self, host: str, port: int) -> int:
        """Opens a proxy in front of a server; answers with its port."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = RelayedConnection(writer)
            self._connections.add(connection)
            try:
                await self._carry_both(connection, reader, host, port)
            except OSError:
                connection.reset()  # nobody there, or one side has gone: the other learns of it
            except asyncio.CancelledError:
                connection.reset()  # the end of this network
            finally:
                connection.end()
                self._connections.discard(connection)

        async def serve() -> int:
            server = await asyncio.start_server(accept, HOST, 0)
            self._servers.append(server)
            number: int = server.sockets[0].getsockname()[1]
            return number

        return asyncio.run_coroutine_threadsafe(serve(), self._loop).result(ORDER_TIMEOUT_S)

    async def _carry_both(
        self, connection: RelayedConnection, reader: asyncio.StreamReader, host: str, port: int
    ) -> None:
        await self._flowing.wait()
        far_reader, connection.far = await asyncio.open_connection(host, port)
        await asyncio.gather(
            self._carry(connection, reader, connection.far, replies=False),
            self._carry(connection, far_reader, connection.near, replies=True),
        )

    async def _carry(
        self, connection: RelayedConnection, source: asyncio.StreamReader, sink: asyncio.StreamWriter, replies: bool
    ) -> None:
        while data := await source.read(PIECE_BYTES):
            await self._flowing.wait()
            if replies and (self._mute or connection.lossy):
                connection.lossy = True
                continue
            if replies and self._dribbling:  # how a server reads is its own matter
                for byte in data:
                    sink.write(bytes([byte]))
                    await sink.drain()
                    await asyncio.sleep(0)
            else:
                sink.write(data)
                await sink.drain()
        await self._flowing.wait()
        sink.close()

    # Orders

    def flow(self) -> None:
        """All is well (again)."""
        self._order(lambda: self._change())

    def silence(self) -> None:
        """From now on everything is accepted and nothing is answered (rule 1)."""
        self._order(lambda: self._change(silent=True))

    def mute(self) -> None:
        """From now on requests arrive and replies do not (rule 2)."""
        self._order(lambda: self._change(mute=True))

    def dribble(self) -> None:
        """From now on every byte of a reply comes alone."""
        self._order(lambda: self._change(dribbling=True))

    def reset(self) -> None:
        """End all connections by RST. New ones are treated as the network is at that moment."""
        self._order(lambda: self._each(RelayedConnection.reset))

    def end_idle(self) -> int:
        """End all connections by FIN; answers how many there were."""
        return self._order(lambda: self._each(RelayedConnection.end))

    @property
    def open(self) -> int:
        """How many connections there are."""
        return self._order(lambda: len(self._connections))

    def close(self) -> None:
        """End everything. A second call does nothing."""
        if self._thread.is_alive():
            self.flow()
            self._order(self._over.set)
            self._thread.join(ORDER_TIMEOUT_S)

    def _change(self, silent: bool = False, mute: bool = False, dribbling: bool = False) -> None:
        self._mute, self._dribbling = mute, dribbling
        if not mute:
            self._each(lambda connection: connection.reset() if connection.lossy else None)
        if silent:
            self._flowing.clear()
        else:
            self._flowing.set()

    def _each(self, do: Callable[[RelayedConnection], None]) -> int:
        connections = list(self._connections)
        for connection in connections:
            do(connection)
        return len(connections)

    def _order(self, change: Callable[[], T]) -> T:
        async def obey() -> T:
            return change()

        return asyncio.run_coroutine_threadsafe(obey(), self._loop).result(ORDER_TIMEOUT_S)


class RelayedConnection:
    """One connection of a client, and the one to the server behind it."""

    def __init__(self, near: asyncio.StreamWriter) -> None:
        self.near = near
        self.far: asyncio.StreamWriter | None = None
        self.lossy = False
        """A reply was swallowed."""

    def reset(self) -> None:
        for writer in (self.near, self.far):
            if writer is not None:
                raw = writer.get_extra_info("socket")
                if raw is not None and raw.fileno() >= 0:
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()

    def end(self) -> None:
        for writer in (self.near, self.far):
            if writer is not None:
                writer.close()


def rewritten(url: str, replace: Callable[[str, int], tuple[str, int]]) -> str:
    """A URL with every host:port in its authority replaced; raises `ValueError` if it has none.

    >>> rewritten("redlock://me:secret@a:1,[::1]:2/0?x=c:3", lambda host, port: ("z", port + 10))
    'redlock://me:secret@z:11,z:12/0?x=c:3'
    """
    scheme, _, rest = url.partition("://")
    end = min((found for mark in "/?#" if (found := rest.find(mark)) >= 0), default=len(rest))
    userinfo, at, hosts = rest[:end].rpartition("@")
    places = []
    for place in hosts.split(","):
        if (match := ADDRESS.fullmatch(place)) is None:
            raise ValueError(
                f"{scheme}://{hosts} does not say host:port; an EngineUnderTest without a network has network=False"
            )
        host, port = replace(match["host"].strip("[]"), int(match["port"]))
        places.append(f"{host}:{port}")
    return f"{scheme}://{userinfo}{at}{','.join(places)}{rest[end:]}"
