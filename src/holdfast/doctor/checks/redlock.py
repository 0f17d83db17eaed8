"""Redlock: whether the nodes are independent, and enough; and each node by the checks of Redis.

Replicas and clusters do not belong into a quorum, so those checks of Redis are replaced by `redlock.nodes`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ...backends.redis.address import RedisAddress
from ...backends.redlock.address import of_url
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, unknown, warning
from . import redis
from .redis import RedisServer

DRIFT_S = 0.5
NODE_CHECKS = tuple(each for each in redis.CHECKS if each not in (redis.role, redis.replicas, redis.cluster))


class QuorumHealth:
    """The nodes by their places; `answers` are those that say who they are."""

    def __init__(self, nodes: dict[str, RedisServer]) -> None:
        self.nodes = nodes
        self.silent: dict[str, str] = {}
        self.answers: dict[str, RedisServer] = {}
        for place, node in nodes.items():
            try:
                node.info  # noqa: B018  it is read here, and kept
                self.answers[place] = node
            except Exception as error:  # noqa: BLE001  whatever it is, it does not answer
                self.silent[place] = str(error)


@check("redlock.number")
def number(quorum: QuorumHealth) -> CheckResult:
    count = len(quorum.nodes)
    if count % 2 == 0:
        return warning(f"there are {count} nodes: one fewer would bear as many failures")
    return fine(f"there are {count} nodes, and {count // 2} may fail")


@check("redlock.majority")
def majority(quorum: QuorumHealth) -> CheckResult:
    count, alive = len(quorum.nodes), len(quorum.answers)
    seen = f"{alive} of {count} nodes answer" + "".join(f"; {place}: {why}" for place, why in quorum.silent.items())
    if alive <= count // 2:
        return failed(seen)
    return warning(seen) if quorum.silent else fine(seen)


@check("redlock.independence")
def independence(quorum: QuorumHealth) -> CheckResult:
    servers = Counter(str(node.info["run_id"]) for node in quorum.answers.values())
    if doubled := [run_id for run_id, count in servers.items() if count > 1]:
        places = [place for place, node in quorum.answers.items() if node.info["run_id"] in doubled]
        return failed(f"{' and '.join(places)} are one server, which has {len(places)} votes")
    hosts = Counter(place.rpartition(":")[0] for place in quorum.nodes)
    if shared := [host for host, count in hosts.items() if count > 1]:
        return warning(f"several nodes are on {', '.join(shared)}")
    return fine("every node is on a host of its own") if servers else unknown("no node answers")


@check("redlock.nodes")
def nodes(quorum: QuorumHealth) -> CheckResult:
    for place, node in quorum.answers.items():
        if node.info["role"] != "master":
            return failed(f"{place} is a replica")
        if node.replica_count:
            return warning(f"{place} has {node.replica_count} replicas: one that takes over has forgotten its votes")
        if int(node.info.get("cluster_enabled", 0)):
            return failed(f"{place} is a node of a cluster, which keeps only some of the names")
    return fine("every node is a primary without replicas") if quorum.answers else unknown("no node answers")


@check("redlock.clocks")
def clocks(quorum: QuorumHealth) -> CheckResult:
    offsets: dict[str, float] = {}
    for place, node in quorum.answers.items():
        before = time.time()
        seconds, microseconds = node.client.time()
        offsets[place] = float(seconds) + float(microseconds) / 1e6 - (before + time.time()) / 2
    if len(offsets) < 2:
        return unknown("fewer than two nodes answer")
    apart = max(offsets.values()) - min(offsets.values())
    seen = f"their clocks are at most {apart:.2g} s apart"
    return warning(seen) if apart > DRIFT_S else fine(seen)


CHECKS: Sequence[HealthCheck[QuorumHealth]] = (number, majority, independence, nodes, clocks)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    address = of_url(url, request_timeout)
    with ExitStack() as stack:
        found: dict[str, RedisServer] = {}
        for place, server in zip(address.places, address.servers, strict=True):
            found[place] = RedisServer(server, request_timeout, RedisAddress(f"redis://{place}", server))
            stack.callback(found[place].close)
        quorum = QuorumHealth(found)
        alive = [Examination(node, NODE_CHECKS, place) for place, node in quorum.answers.items()]
        yield [Examination(quorum, CHECKS), *alive]
