"""What a server can promise, judged by its settings.

A lock that must not be forgotten needs a disk that is written before the reply (appendfsync always, or WAITAOF), no
eviction, and where a replica may take over, all replicas told before the reply (WAIT).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...model import Promises
from .durability import Durability

ALWAYS = frozenset({"fencing", "shared", "counting", "records"})
LINEARIZABLE = (
    "Redis keeps time by its wall clock, and a replica that takes over may not have heard of a grant; "
    "tokens still grow, so fence the resource, or use etcd:// or zookeeper://"
)
SETTINGS = ("maxmemory", "maxmemory-policy", "appendonly", "appendfsync")


def judge(settings: Mapping[str, str] | None, replicas: int, durability: Durability | None, failover: bool) -> Promises:
    """`settings` is None if the server does not tell them (an ACL without CONFIG)."""
    notes = {"linearizable": LINEARIZABLE}
    if (why := _forgets(settings, replicas, durability, failover)) is not None:
        notes["durable"] = why
    if settings is not None and (evicts := _evicts(settings)) is not None:
        notes["eviction"] = evicts
    kept = ALWAYS if "durable" in notes else ALWAYS | {"durable"}
    return Promises(kept, notes)


def _evicts(settings: Mapping[str, str]) -> str | None:
    policy = settings.get("maxmemory-policy", "noeviction")
    if policy == "noeviction" or settings.get("maxmemory", "0") == "0":
        return None
    return f"maxmemory-policy is {policy}: a server that is full may drop locks and records; set it to noeviction"


def _forgets(
    settings: Mapping[str, str] | None, replicas: int, durability: Durability | None, failover: bool
) -> str | None:
    if settings is None:
        return "the server does not tell its settings (CONFIG GET is not allowed to this user)"
    if (why := _evicts(settings)) is not None:
        return why
    if settings.get("appendonly") != "yes":
        return "appendonly is off: a restart forgets every lock; set appendonly yes and appendfsync always"
    on_disk = durability is not None and durability.aof is not None and durability.aof[0] > 0
    fsync = settings.get("appendfsync")
    if fsync != "always" and not on_disk:
        return f"appendfsync is {fsync}: a crash forgets the last second; set it to always, or use wait_aof=1"
    told = 0 if durability is None else max(durability.replicas, durability.aof[1] if durability.aof else 0)
    if (replicas or failover) and told < max(replicas, 1):
        return f"a replica that takes over may not have a grant; wait for all {max(replicas, 1)} with wait_replicas="
    return None
