"""Three ZooKeeper servers with a short tick, so that sessions can be shorter than a second.

1. Clients reach the servers through the proxy; servers reach each other directly.
2. Sessions count by the monotonic clock of the JVM, and tokens are zxids: the calendar plays no part.
3. `myid` is a server's identity, not its data: a wipe keeps it.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from ..proxy import ProxyNetwork
from ..sandbox import NotAvailable, Sandbox, ServerNode
from ..sandbox.loopback import free_port
from .model import EngineOptions, EngineSetup, TorturedEngine, need_program, need_scheme

SERVER_COUNT = 3
TTL_S = 1.0
JARS = Path("/usr/share/java")
CLASSES = (
    "zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-handler", "netty-transport", "netty-buffer",
    "netty-common", "netty-codec", "netty-resolver", "netty-transport-native-unix-common",
    "netty-transport-native-epoll", "metrics-core", "snappy-java", "commons-cli",
)  # fmt: skip
SETTINGS = (
    "tickTime=200", "initLimit=40", "syncLimit=10", "maxClientCnxns=0", "maxSessionTimeout=90000",
    "admin.enableServer=false", "4lw.commands.whitelist=srvr",
)  # fmt: skip


def answers(host: str, port: int) -> bool:
    """Whether it serves clients: a server without a quorum does not say its mode."""
    try:
        with socket.create_connection((host, port), 1) as link:
            link.settimeout(1)
            link.sendall(b"srvr")
            answer = b""
            while data := link.recv(1 << 16):
                answer += data
            return b"Mode: " in answer
    except OSError:
        return False


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    java = need_program("java", "default-jre-headless")
    if not (JARS / "zookeeper.jar").exists():
        raise NotAvailable("zookeeper is not installed (Debian: libzookeeper-java)")
    setup = EngineSetup(sandbox, engine_options, None, 256)
    host = setup.location.host
    peers = {number: (free_port(), free_port()) for number in range(1, SERVER_COUNT + 1)}

    def new_node(number: int) -> ServerNode:
        name = f"zookeeper-{number}"
        folder, port = setup.folder(name), free_port()
        pristine = sandbox.new_folder(f"{name}-pristine")
        (pristine / "myid").write_text(str(number))
        config = folder / "zoo.cfg"
        others = [f"server.{n}={host}:{peer}:{vote}" for n, (peer, vote) in peers.items()]
        own = [f"clientPortAddress={host}", f"clientPort={port}", f"dataDir={folder / 'data'}"]
        config.write_text("\n".join([*SETTINGS, *others, *own, ""]))
        words = [
            java, "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Dzookeeper.forceSync={'yes' if engine_options.flushes else 'no'}",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dzookeeper.extendedTypesEnabled=true",
            "-Dznode.container.checkIntervalMs=500", "-cp", ":".join(str(JARS / f"{name}.jar") for name in CLASSES),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config),
        ]  # fmt: skip
        node = ServerNode(
            sandbox, name, folder, port, lambda: words, lambda: answers(host, port),
            location=setup.location, pristine=pristine, more_ports=peers[number],
        )  # fmt: skip
        node.wipe()
        return node

    nodes = [new_node(number) for number in peers]
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()
    network = ProxyNetwork(sandbox)

    def url(client: str) -> str:
        ports = [network.open(client, node.name, node.host, node.port) for node in nodes]
        return "zookeeper://" + ",".join(f"127.0.0.1:{port}" for port in ports)

    def end_sessions() -> None:
        network.hold("A>*")
        time.sleep(4 * TTL_S)
        network.heal("A>*")

    return TorturedEngine(
        scheme, sandbox, TTL_S, url, nodes, network, setup.location, setup.disks,
        setup.cannot
        | dict.fromkeys(("clock-forward", "clock-back"), "sessions count monotonic time, and tokens are zxids")
        | {"failover": "it replicates by consensus: kill-node kills its leader, too"},
        recovery_s=3.0,
        counts_tokens=True,
        sessions=True,
        flushes=engine_options.flushes,
        end_sessions=end_sessions,
    )  # fmt: skip
