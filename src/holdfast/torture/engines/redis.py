"""One Redis with an append-only file, and a replica where a fail-over is wished for.

Where its clock may jump or its disk be full, the file is flushed before each reply, so a killed server comes back with
all it has granted. With `everysec` it does not: Redis puts writes off for up to 2 s behind a slow flush, and answers
meanwhile; a run found it. That is harmless only as long as the clock has passed every token.
Replication is asynchronous: what the replica has not heard is gone after a fail-over.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from ..arena import Node, Site
from ..arena.loopback import eventually, free_port
from ..arena.node import START_TIMEOUT
from ..proxy import Network
from .model import Engine, Ground, Wishes, need_module, need_program, need_scheme

SETTINGS = {
    "save": "",
    "appendfsync": "everysec",
    "loglevel": "warning",
    "protected-mode": "no",
    "repl-diskless-sync-delay": "0",
}


def command(host: str, port: int, *words: str) -> bytes:
    """One command on a connection of its own; a short reply."""
    frame = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w.encode()), w.encode()) for w in words)
    with socket.create_connection((host, port), timeout=2) as link:
        link.sendall(frame)
        return link.recv(1 << 16)


def answers(host: str, port: int) -> bool:
    try:
        return command(host, port, "PING").startswith(b"+PONG")
    except OSError:
        return False


def rewrite(host: str, port: int) -> None:
    """A clean append-only file: what was written to a full disk may be torn, and Redis would not start from it."""

    def is_clean() -> bool:
        told = command(host, port, "INFO", "persistence")
        if b"aof_enabled:0" in told:
            return True
        return b"aof_rewrite_in_progress:0" in told and b"aof_rewrite_scheduled:0" in told

    command(host, port, "BGREWRITEAOF")
    eventually(is_clean, START_TIMEOUT)


def new_node(ground: Ground, name: str, append_only: bool = True, **settings: str) -> Node:
    folder, port = ground.folder(name), free_port()
    (folder / "data").mkdir(exist_ok=True)
    host = ground.place.host

    def words() -> list[str]:
        ours = {**SETTINGS, "bind": host, "port": str(port), "dir": str(folder / "data"), **settings}
        if ground.wishes.clocks or ground.wishes.small_disk or ground.wishes.flushes:
            ours["appendfsync"] = "always"
        ours["appendonly"] = "yes" if append_only else "no"
        said = [
            part for key, value in ours.items() for part in (f"--{key.replace('_', '-')}", *(value.split() or [""]))
        ]
        return [program, *said]

    program = need_program("redis-server", "redis-server")
    return Node(
        ground.site, name, folder, port, words, lambda: answers(host, port),
        place=ground.place, clock=ground.clock(folder),
        mend=lambda: rewrite(host, port),
    )  # fmt: skip


@dataclass(slots=True)
class Pair:
    """A primary and its replica. Clients reach whichever is primary through the links `client>redis`."""

    engine: Engine
    network: Network
    primary: Node
    other: Node
    following: bool = False

    def follow(self) -> None:
        """The other becomes a replica of the primary, through a link that can be held."""
        self.other.wipe()
        self.other.start()
        gateway = self.primary.place.gateway
        port = self.network.open("replica", self.primary.name, self.primary.host, self.primary.port, gateway)
        command(self.other.host, self.other.port, "REPLICAOF", gateway, str(port))
        if not eventually(self._in_step, START_TIMEOUT):
            raise RuntimeError(f"{self.other.name} does not follow {self.primary.name}: {self.other.log()}")

    def _in_step(self) -> bool:
        return b"master_link_status:up" in command(self.other.host, self.other.port, "INFO", "replication")

    def lag(self) -> None:
        if not self.following:
            self.follow()
            self.following = True
        self.network.hold("replica>*")

    def fail_over(self) -> None:
        self.primary.kill()
        command(self.other.host, self.other.port, "REPLICAOF", "NO", "ONE")
        self.network.lead("*>redis", self.other.port)
        self.primary, self.other = self.other, self.primary
        self.engine.nodes[0] = self.primary
        self.disown()

    def disown(self) -> None:
        self.network.heal("replica>*")
        self.other.kill()
        self.following = False


def start(scheme: str, site: Site, wishes: Wishes) -> Engine:
    need_scheme(scheme)
    need_module("redis", "redis")
    ground = Ground(site, wishes, None, 32)
    node = new_node(ground, "redis-1")
    node.start()
    network = Network(site)

    def url(client: str) -> str:
        return f"redis://127.0.0.1:{network.open(client, 'redis', engine.nodes[0].host, engine.nodes[0].port)}"

    engine = Engine(
        scheme, site, 0.2, url, [node], network, ground.place, ground.disks, ground.cannot, flushes=wishes.flushes,
    )  # fmt: skip
    if wishes.replica:
        engine.replica = Pair(engine, network, node, new_node(ground, "redis-2"))
    return engine
