"""One Redis with an append-only file, and a replica for fail-overs.

Where its clock may jump or its disk be full, the file is flushed before each reply, so a killed server comes back with
all it has granted. With `everysec` it does not: Redis puts writes off for up to 2 s behind a slow flush, and answers
meanwhile; a run found it. That is harmless only as long as the clock has passed every token.
Replication is asynchronous: what the replica has not received is lost after a fail-over.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from ..proxy import ProxyNetwork
from ..sandbox import Sandbox, ServerNode
from ..sandbox.loopback import eventually, free_port
from ..sandbox.server import START_TIMEOUT_S
from .model import EngineOptions, EngineSetup, TorturedEngine, need_module, need_program, need_scheme

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
    eventually(is_clean, START_TIMEOUT_S)


def new_node(setup: EngineSetup, name: str, append_only: bool = True, **settings: str) -> ServerNode:
    folder, port = setup.folder(name), free_port()
    (folder / "data").mkdir(exist_ok=True)
    host = setup.location.host

    def words() -> list[str]:
        ours = {**SETTINGS, "bind": host, "port": str(port), "dir": str(folder / "data"), **settings}
        if setup.engine_options.clocks or setup.engine_options.small_disk or setup.engine_options.flushes:
            ours["appendfsync"] = "always"
        ours["appendonly"] = "yes" if append_only else "no"
        said = [
            part for key, value in ours.items() for part in (f"--{key.replace('_', '-')}", *(value.split() or [""]))
        ]
        return [program, *said]

    program = need_program("redis-server", "redis-server")
    return ServerNode(
        setup.sandbox, name, folder, port, words, lambda: answers(host, port),
        location=setup.location, clock=setup.clock(folder),
        repair=lambda: rewrite(host, port),
    )  # fmt: skip


@dataclass(slots=True)
class RedisReplica:
    """A primary and its replica. Clients reach whichever is primary through the links `client>redis`."""

    engine: TorturedEngine
    network: ProxyNetwork
    primary: ServerNode
    other: ServerNode
    following: bool = False

    def follow(self) -> None:
        """The other becomes a replica of the primary, through a link that can be held."""
        self.other.wipe()
        self.other.start()
        gateway = self.primary.location.gateway
        port = self.network.open("replica", self.primary.name, self.primary.host, self.primary.port, gateway)
        command(self.other.host, self.other.port, "REPLICAOF", gateway, str(port))
        if not eventually(self._in_step, START_TIMEOUT_S):
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


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    need_module("redis", "redis")
    setup = EngineSetup(sandbox, engine_options, None, 32)
    node = new_node(setup, "redis-1")
    node.start()
    network = ProxyNetwork(sandbox)

    def url(client: str) -> str:
        return f"redis://127.0.0.1:{network.open(client, 'redis', engine.nodes[0].host, engine.nodes[0].port)}"

    engine = TorturedEngine(
        scheme, sandbox, 0.2, url, [node], network, setup.location, setup.disks, setup.cannot,
        flushes=engine_options.flushes,
    )  # fmt: skip
    if engine_options.replica:
        engine.replica = RedisReplica(engine, network, node, new_node(setup, "redis-2"))
    return engine
