"""Five independent Redis servers without a disk: a node that restarts has forgotten everything, and must be re-seeded.

The longest ttl is told (`longest_ttl`), because a node that came back stays out of the quorum for that long.
"""

from __future__ import annotations

from ..arena import Site
from ..proxy import Network
from .model import Engine, Ground, Wishes, need_module, need_scheme
from .redis import new_node

NODES = 5
LONGEST_TTL = 3.0


def start(scheme: str, site: Site, wishes: Wishes) -> Engine:
    need_scheme(scheme)
    need_module("redis", "redis")
    ground = Ground(site, wishes, None, 16)
    nodes = [new_node(ground, f"redis-{number}", append_only=False) for number in range(1, NODES + 1)]
    for node in nodes:
        node.start(wait=False)
    for node in nodes:
        node.await_answer()
    network = Network(site)

    def url(client: str) -> str:
        ports = [network.open(client, node.name, node.host, node.port) for node in nodes]
        return "redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports) + f"?longest_ttl={LONGEST_TTL:g}"

    no_disk = "the nodes keep nothing on disk: a node that restarts has forgotten everything (amnesia)"
    return Engine(
        scheme, site, 0.3, url, nodes, network, ground.place, ground.disks,
        ground.cannot
        | dict.fromkeys(("disk-full", "slow-fsync", "hung-fsync"), no_disk)
        | {"failover": "the nodes are independent: there is no replica"},
        mends_for=2 * LONGEST_TTL,
        longest_ttl=LONGEST_TTL,
    )  # fmt: skip
