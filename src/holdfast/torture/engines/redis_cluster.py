"""A Redis Cluster of three primaries with a replica each, which takes over when its primary dies or stands still.

1. Clients are told the addresses of the nodes by the nodes, so they reach them directly: no proxy stands between.
2. Replication is asynchronous: what a replica has not received is lost when it takes over; tokens must grow even so.
3. Nodes decide quickly (`cluster-node-timeout`), so that a fail-over is over before a client gives up.
"""

from __future__ import annotations

from ..sandbox import Sandbox, ServerNode
from ..sandbox.loopback import eventually, free_port
from ..sandbox.sandbox import DidNotStart
from ..sandbox.server import START_TIMEOUT_S
from .model import EngineOptions, EngineSetup, TorturedEngine, need_module, need_program, need_scheme
from .redis import command, new_node

PRIMARY_COUNT = 3
NODE_TIMEOUT_MS = 600
_DIRECT = "nodes of a cluster tell clients their own addresses: no proxy stands between"
_MEMBERS = "a member that lost its disk is another node to its peers"


def is_whole(node: ServerNode) -> bool:
    """Whether this node sees every slot served."""
    try:
        return b"cluster_state:ok" in command(node.host, node.port, "CLUSTER", "INFO")
    except OSError:
        return False


def start(scheme: str, sandbox: Sandbox, engine_options: EngineOptions) -> TorturedEngine:
    need_scheme(scheme)
    need_module("redis", "redis")
    client = need_program("redis-cli", "redis-tools")
    setup = EngineSetup(sandbox, engine_options, None, 32)
    nodes = [
        new_node(
            setup, f"redis-{number}",
            cluster_enabled="yes", cluster_port=str(free_port()), cluster_node_timeout=str(NODE_TIMEOUT_MS),
            cluster_replica_validity_factor="0", cluster_allow_replica_migration="no",
        )
        for number in range(1, 2 * PRIMARY_COUNT + 1)
    ]  # fmt: skip
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()
    addresses = [f"{node.host}:{node.port}" for node in nodes]
    nodes[0].run(client, "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes")
    if not eventually(lambda: all(map(is_whole, nodes)), START_TIMEOUT_S):
        raise DidNotStart(f"the cluster does not become whole: {nodes[0].log()}")
    url = "redis+cluster://" + ",".join(addresses)
    return TorturedEngine(
        scheme, sandbox, 1.0, lambda client: url, nodes, None, setup.location, setup.disks,
        setup.cannot
        | dict.fromkeys(("partition", "delay", "lost-replies", "reset", "silent"), _DIRECT)
        | dict.fromkeys(("amnesia", "total-amnesia"), _MEMBERS)
        | {"failover": "kill-node and pause-node of a primary are one, by the cluster itself"},
        recovery_s=3.0,
        flushes=engine_options.flushes,
    )  # fmt: skip
