"""The proxy process in front of all nodes of a sandbox, with a port for each pair of a client and a node.

1. A link that is *held* forwards nothing and loses nothing: what was sent arrives when it flows again, as TCP would
   deliver it after a partition, including late requests of clients that have given up.
2. A link that is *mute* forwards requests and drops replies. A connection that has lost a byte of a stream forwards
   nothing more on it; it is reset once the link is healed, as TCP cannot go on after a gap.
3. `lose` drops so many replies and resets their connection at once. `reset` ends all connections by RST.
4. Commands come as lines of JSON on stdin, each answered by a line on stdout once it is in force. The process ends with
   its stdin.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import Any

CHUNK_BYTES = 1 << 16


@dataclass(slots=True, eq=False)
class ProxiedConnection:
    near: asyncio.StreamWriter
    far: asyncio.StreamWriter | None = None
    silent: bool = False

    def reset(self) -> None:
        for writer in (self.near, self.far):
            if writer is not None:
                abort(writer)


@dataclass(slots=True, eq=False)
class ProxyLink:
    """The connections between one client and one node."""

    host: str
    target: int
    delay: float = 0.0
    mute: bool = False
    lose: int = 0
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[ProxiedConnection] = field(default_factory=set)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = ProxiedConnection(writer)
        self.connections.add(connection)
        try:
            await self.flowing.wait()
            far_reader, connection.far = await asyncio.open_connection(self.host, self.target)
            for one in (writer, connection.far):
                one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.gather(
                self._carry(connection, reader, connection.far, replies=False),
                self._carry(connection, far_reader, writer, replies=True),
            )
        except OSError:
            connection.reset()  # nobody there, or one side has gone: the other learns of it
        finally:
            self.connections.discard(connection)

    async def _carry(
        self, connection: ProxiedConnection, source: asyncio.StreamReader, sink: asyncio.StreamWriter, replies: bool
    ) -> None:
        while data := await source.read(CHUNK_BYTES):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self.flowing.wait()
            if replies and self.lose > 0:
                self.lose -= 1
                connection.reset()
                return
            connection.silent = connection.silent or (replies and self.mute)
            if connection.silent and replies:
                continue
            sink.write(data)
            await sink.drain()
        await self.flowing.wait()
        sink.close()

    def change(self, command: dict[str, Any]) -> None:
        """Apply the settings that the command names; the rest stays as it is."""
        self.host = command.get("host", self.host)
        self.target = command.get("target", self.target)
        self.delay = command.get("delay", self.delay)
        self.mute = command.get("mute", self.mute)
        self.lose = command.get("lose", self.lose)
        if (held := command.get("held")) is not None:
            self.flowing.clear() if held else self.flowing.set()
        reset = command.get("reset", False)
        for connection in list(self.connections):
            if reset or (connection.silent and not self.mute):
                connection.reset()


def abort(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST."""
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def give_up(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A bug of ours must not look like a fault of the network."""
    loop.default_exception_handler(context)
    os._exit(1)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(give_up)
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    links: dict[str, ProxyLink] = {}
    servers = []
    while line := await commands.readline():
        command = json.loads(line)
        ports = list[int]()
        for name in command["links"]:
            if name in links:
                links[name].change(command)
            else:
                link = links[name] = ProxyLink(command["host"], command["target"])
                link.flowing.set()
                servers.append(await asyncio.start_server(link.accept, command["at"], 0))
                ports.append(servers[-1].sockets[0].getsockname()[1])
        print(json.dumps({"done": command["number"], "ports": ports}), flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        pass  # the run ends us
