"""Five independent Redis servers without a disk: a node that restarts has forgotten everything, and must be re-seeded.

The longest ttl is told (`longest_ttl`), because a node that came back stays out of the quorum for that long.
"""

from __future__ import annotations

from ..proxy import ProxyNetwork
from ..sandbox import Sandbox
from .model import EngineOptions, EngineSetup, TorturedEngine, need_module, need_scheme
from .redis import new_node

NODE_COUNT = 5
LONGEST_TTL_S = 3.0


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    need_module("redis", "redis")
    setup = EngineSetup(sandbox, engine_options, None, 16)
    nodes = [new_node(setup, f"redis-{number}", append_only=False) for number in range(1, NODE_COUNT + 1)]
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()
    network = ProxyNetwork(sandbox)

    def url(client: str) -> str:
        ports = [network.open(client, node.name, node.host, node.port) for node in nodes]
        return "redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports) + f"?longest_ttl={LONGEST_TTL_S:g}"

    no_disk = "the nodes keep nothing on disk: a node that restarts has forgotten everything (amnesia)"
    return TorturedEngine(
        scheme, sandbox, 0.3, url, nodes, network, setup.location, setup.disks,
        setup.cannot
        | dict.fromkeys(("disk-full", "slow-fsync", "hung-fsync"), no_disk)
        | {"failover": "the nodes are independent: there is no replica"},
        recovery_s=2 * LONGEST_TTL_S,
        longest_ttl=LONGEST_TTL_S,
    )  # fmt: skip
