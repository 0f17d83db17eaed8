"""Three etcd members that elect quickly and do not flush, unless disk faults are injected: only processes die.

1. Clients reach the members through the proxy; members reach each other directly.
2. etcd is written in Go, which asks the kernel for the time without libc: its clock cannot be moved by libfaketime. It
   matters little: leases count by the monotonic clock of the leader, and tokens are revisions.
3. A member that lost its data is refused by its peers. The whole cluster can lose it, and begins at revision 1.
4. `etcds`: clients speak TLS to the members, so that faults of a connection hit its handshake and its records.
"""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any

from ..proxy import ProxyNetwork
from ..sandbox import Sandbox, ServerNode
from ..sandbox.certificates import certificates
from ..sandbox.loopback import free_port
from .model import EngineOptions, EngineSetup, TorturedEngine, need_program, need_scheme

MEMBER_COUNT = 3


@dataclass(frozen=True, slots=True)
class Operator:
    """Sends requests to the gateways of the members without the proxy; over TLS, if the members use it."""

    tls: ssl.SSLContext | None = None

    def ask(self, host: str, port: int, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        if self.tls is None:
            link = http.client.HTTPConnection(host, port, timeout=2)
        else:
            link = http.client.HTTPSConnection(host, port, timeout=2, context=self.tls)
        try:
            link.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
            answer: dict[str, Any] = json.loads(link.getresponse().read())
            return answer
        finally:
            link.close()

    def is_answered(self, host: str, port: int) -> bool:
        try:
            return self.ask(host, port, "/health").get("health") == "true"
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def end_leases(self, nodes: list[ServerNode]) -> None:
        """Revoke every lease, as an operator can."""
        host, port = nodes[0].host, nodes[0].port
        for lease in self.ask(host, port, "/v3/lease/leases", {}).get("leases", []):
            self.ask(host, port, "/v3/lease/revoke", {"ID": lease["ID"]})

    def leader(self, nodes: list[ServerNode]) -> ServerNode | None:
        """The member that says of itself that it leads; None if nobody answers."""
        for node in nodes:
            try:
                status = self.ask(node.host, node.port, "/v3/maintenance/status", {})
            except (OSError, ValueError, http.client.HTTPException):
                continue
            if status.get("leader") == status["header"]["member_id"]:
                return node
        return None


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    program = need_program("etcd", "etcd-server")
    setup = EngineSetup(sandbox, engine_options, None, 320)
    host = setup.location.host
    names = [f"etcd-{number}" for number in range(1, MEMBER_COUNT + 1)]
    peers = {name: free_port() for name in names}
    operator, secured, query, web = Operator(), list[str](), "", "http"
    if scheme == "etcds":
        made = certificates(sandbox, "127.0.0.1", host)
        operator, web, query = Operator(made.context()), "https", f"?ca={made.authority}"
        secured = ["--cert-file", str(made.shown), "--key-file", str(made.key)]
    cluster = ",".join(f"{name}=http://{host}:{port}" for name, port in peers.items())

    def new_node(name: str) -> ServerNode:
        folder, port = setup.folder(name), free_port()
        client_url = f"{web}://{host}:{port}"
        words = [
            program, "--name", name, "--data-dir", str(folder / "data"), "--log-level", "error",
            *(() if engine_options.flushes else ("--unsafe-no-fsync",)), *secured,
            "--heartbeat-interval", "20", "--election-timeout", "200", "--initial-cluster", cluster,
            "--listen-client-urls", client_url, "--advertise-client-urls", client_url,
            "--listen-peer-urls", f"http://{host}:{peers[name]}", "--initial-advertise-peer-urls",
            f"http://{host}:{peers[name]}", "--initial-cluster-state", "new",
        ]  # fmt: skip
        node = ServerNode(
            sandbox, name, folder, port, lambda: words, lambda: operator.is_answered(host, port),
            location=setup.location, more_ports=(peers[name],),
        )  # fmt: skip
        node.wipe()
        return node

    nodes = [new_node(name) for name in names]
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()
    network = ProxyNetwork(sandbox)

    def url(client: str) -> str:
        ports = [network.open(client, node.name, node.host, node.port) for node in nodes]
        return f"{scheme}://" + ",".join(f"127.0.0.1:{port}" for port in ports) + query

    return TorturedEngine(
        scheme, sandbox, 1.0, url, nodes, network, setup.location, setup.disks,
        setup.cannot
        | dict.fromkeys(("clock-forward", "clock-back"), "Go reads the clock without libc; leases count monotonic time")
        | {
            "failover": "it replicates by consensus: kill-node kills its leader, too",
            "amnesia": "a member that lost its disk is turned away by its peers until an operator replaces it",
        },
        recovery_s=1.0,
        counts_tokens=True,
        sessions=True,
        flushes=engine_options.flushes,
        leader=lambda: operator.leader(nodes),
        end_sessions=lambda: operator.end_leases(nodes),
    )  # fmt: skip
