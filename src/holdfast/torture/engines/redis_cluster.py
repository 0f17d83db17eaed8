"""A Redis Cluster of three primaries with a replica each, which takes over when its primary dies or stands still.

1. Clients are told the addresses of the nodes by the nodes, so they reach them directly: no proxy stands between.
2. Replication is asynchronous: what a replica has not heard is gone when it takes over, and tokens must grow even so.
3. Nodes decide quickly (`cluster-node-timeout`), so that a fail-over is over before a client gives up.
"""

from __future__ import annotations

from ..arena import Node, Site
from ..arena.loopback import eventually, free_port
from ..arena.node import START_TIMEOUT
from ..arena.site import DidNotStart
from .model import Engine, Ground, Wishes, need_module, need_program, need_scheme
from .redis import command, new_node

PRIMARIES = 3
NODE_TIMEOUT_MS = 600
_DIRECT = "nodes of a cluster tell clients their own addresses: no proxy stands between"
_MEMBERS = "a member that lost its disk is another node to its peers"


def is_whole(node: Node) -> bool:
    """Whether this node sees every slot served."""
    try:
        return b"cluster_state:ok" in command(node.host, node.port, "CLUSTER", "INFO")
    except OSError:
        return False


def start(scheme: str, site: Site, wishes: Wishes) -> Engine:
    need_scheme(scheme)
    need_module("redis", "redis")
    client = need_program("redis-cli", "redis-tools")
    ground = Ground(site, wishes, None, 32)
    nodes = [
        new_node(
            ground, f"redis-{number}",
            cluster_enabled="yes", cluster_port=str(free_port()), cluster_node_timeout=str(NODE_TIMEOUT_MS),
            cluster_replica_validity_factor="0", cluster_allow_replica_migration="no",
        )
        for number in range(1, 2 * PRIMARIES + 1)
    ]  # fmt: skip
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()
    addresses = [f"{node.host}:{node.port}" for node in nodes]
    nodes[0].run(client, "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes")
    if not eventually(lambda: all(map(is_whole, nodes)), START_TIMEOUT):
        raise DidNotStart(f"the cluster does not become whole: {nodes[0].log()}")
    url = "redis+cluster://" + ",".join(addresses)
    return Engine(
        scheme, site, 1.0, lambda client: url, nodes, None, ground.place, ground.disks,
        ground.cannot
        | dict.fromkeys(("partition", "delay", "lost-replies", "reset", "silent"), _DIRECT)
        | dict.fromkeys(("amnesia", "total-amnesia"), _MEMBERS)
        | {"failover": "kill-node and pause-node of a primary are one, by the cluster itself"},
        mends_for=3.0,
        flushes=wishes.flushes,
    )  # fmt: skip
