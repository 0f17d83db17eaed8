"""Redis: settings that forget locks, drop connections, or let a replica take over that has not heard of a grant.

Read with redis-py on a connection of its own: INFO, CONFIG GET, TIME, CLIENT; nothing is written. A server that does
not let this user see its settings (an ACL) is one that could not be looked at, setting by setting.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

from ...backends.redis.address import RedisAddress, of_url
from ...backends.redis.server import SentinelService, Server, need_redis_py
from ..clocks import apart
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, warning

OLDEST = (6, 2)
"""The oldest version that the programs are tested with."""
OUTDATED = (7, 0)
SHORT_TIMEOUT_S = 300


class RedisServer:
    """One server. What was read is kept, so that each question is asked once."""

    def __init__(self, server: Server, request_timeout: float, address: RedisAddress) -> None:
        redis = need_redis_py()
        options = {**server.options, "socket_timeout": request_timeout, "socket_connect_timeout": request_timeout}
        pool = redis.ConnectionPool(connection_class=getattr(redis.connection, server.kind), **options)
        self.client = redis.Redis(connection_pool=pool)
        self.address = address

    def close(self) -> None:
        self.client.connection_pool.disconnect()

    @cached_property
    def info(self) -> dict[str, Any]:
        return dict(self.client.info("everything"))

    @cached_property
    def settings(self) -> dict[str, str]:
        """All settings but passwords."""
        redis = need_redis_py()
        try:
            said = self.client.config_get("*")
        except redis.exceptions.ResponseError as error:
            raise PermissionError(f"the server does not tell its settings: {error}") from None
        return {_text(name): _text(value) for name, value in said.items() if "pass" not in _text(name)}

    @property
    def version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", str(self.info["redis_version"]))[:3])

    @property
    def replica_count(self) -> int:
        return int(self.info.get("connected_slaves", 0))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@check("redis.version")
def version(server: RedisServer) -> CheckResult:
    seen = f"the version is {server.info['redis_version']}"
    if server.version < OLDEST:
        return failed(seen)
    return warning(seen) if server.version < OUTDATED else fine(seen)


@check("redis.role")
def role(server: RedisServer) -> CheckResult:
    if server.info["role"] == "master":
        return fine("it is the primary")
    return failed(f"it is a replica of {server.info.get('master_host')}:{server.info.get('master_port')}")


@check("redis.eviction")
def eviction(server: RedisServer) -> CheckResult:
    policy, limit = server.settings["maxmemory-policy"], int(server.settings["maxmemory"])
    if policy == "noeviction":
        return fine("maxmemory-policy is noeviction")
    if limit == 0:
        return warning(f"maxmemory-policy is {policy}; there is no maxmemory yet, and with one locks would be dropped")
    return failed(f"maxmemory-policy is {policy} with maxmemory {limit}")


@check("redis.memory")
def memory(server: RedisServer) -> CheckResult:
    limit, used = int(server.settings["maxmemory"]), int(server.info["used_memory"])
    if limit == 0:
        return fine(f"{used >> 20} MiB are used, without a limit of Redis' own")
    seen = f"{used} bytes of maxmemory {limit} are used"
    return failed(seen) if used > 0.95 * limit else warning(seen) if used > 0.8 * limit else fine(seen)


@check("redis.persistence")
def persistence(server: RedisServer) -> CheckResult:
    if server.settings["appendonly"] != "yes":
        return warning("appendonly is no")
    fsync, durability = server.settings["appendfsync"], server.address.durability
    on_disk = durability is not None and durability.aof is not None and durability.aof[0] > 0
    if fsync == "always" or on_disk:
        return fine(f"appendonly is yes, appendfsync is {fsync}{', and wait_aof is used' if on_disk else ''}")
    return warning(f"appendonly is yes, but appendfsync is {fsync}")


@check("redis.persistence-works")
def persistence_works(server: RedisServer) -> CheckResult:
    broken = [
        name
        for name in ("rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status")
        if server.info.get(name, "ok") != "ok"
    ]
    return failed(f"{', '.join(broken)} is 'err'") if broken else fine("the last writes to disk went well")


@check("redis.min-replicas")
def min_replicas(server: RedisServer) -> CheckResult:
    least = int(server.settings.get("min-replicas-to-write", "0"))
    if least > server.replica_count:
        return failed(f"min-replicas-to-write is {least}, and {server.replica_count} replicas are connected")
    return fine(f"min-replicas-to-write is {least}")


@check("redis.replicas")
def replicas(server: RedisServer) -> CheckResult:
    count, durability = server.replica_count, server.address.durability
    confirmed = 0 if durability is None else max(durability.replicas, durability.aof[1] if durability.aof else 0)
    failover = isinstance(server.address.primary, SentinelService) or bool(server.address.seeds)
    if not count and not failover:
        return fine("it has no replica that could take over")
    if confirmed >= max(count, 1):
        return fine(f"a grant is confirmed by {confirmed} of {count} replicas before it counts")
    return warning(f"{count} replicas are told of a grant after it has been given, and {confirmed} are waited for")


@check("redis.timeout")
def timeout(server: RedisServer) -> CheckResult:
    seconds = int(server.settings["timeout"])
    if seconds == 0:
        return fine("timeout is 0: idle connections stay")
    seen = f"timeout is {seconds}: a connection that is idle for so long is closed by the server"
    return failed(seen) if seconds < 10 else warning(seen) if seconds < SHORT_TIMEOUT_S else fine(seen)


@check("redis.protected")
def protected(server: RedisServer) -> CheckResult:
    addresses = server.settings.get("bind", "").split()
    local = bool(addresses) and all(re.match(r"-?(127\.|::1$|localhost$)", a) for a in addresses)
    users = server.client.execute_command("ACL", "LIST")
    open_door = any("nopass" in (said := _text(each)) and " on " in said for each in users)
    if not open_door:
        return fine("users have passwords")
    if server.settings.get("protected-mode") == "yes":
        return fine("there is no password, and protected-mode is yes: only this machine may connect")
    seen = f"no password is needed, protected-mode is no, and it is bound to {' '.join(addresses) or 'every address'}"
    return fine(seen) if local else failed(seen)


@check("redis.clients")
def clients(server: RedisServer) -> CheckResult:
    most, now = int(server.settings["maxclients"]), int(server.info["connected_clients"])
    seen = f"{now} of maxclients {most} are connected"
    return failed(seen) if now > 0.95 * most else warning(seen) if now > 0.7 * most else fine(seen)


@check("redis.slow-scripts")
def slow_scripts(server: RedisServer) -> CheckResult:
    limit = int(server.settings.get("busy-reply-threshold", server.settings.get("lua-time-limit", "5000")))
    if limit == 0 or limit >= 100:
        return fine(f"busy-reply-threshold is {limit} ms")
    return warning(
        f"busy-reply-threshold is {limit} ms: other clients are answered BUSY while a program runs that long"
    )


@check("redis.clock")
def clock(server: RedisServer) -> CheckResult:
    def read() -> float:
        seconds, microseconds = server.client.time()
        return float(seconds) + float(microseconds) / 1e6

    return apart(read, time.time)


@check("redis.cluster")
def cluster(server: RedisServer) -> CheckResult | None:
    enabled = int(server.info.get("cluster_enabled", 0))
    if not enabled:
        return failed("the URL says redis+cluster://, and cluster-enabled is no") if server.address.seeds else None
    if not server.address.seeds:
        return failed("cluster-enabled is yes, and the URL does not say redis+cluster://")
    state = {_text(k): _text(v) for k, v in server.client.cluster("INFO").items()}
    if state.get("cluster_state") != "ok":
        return failed(f"cluster_state is {state.get('cluster_state')}")
    return fine(f"{state.get('cluster_size')} primaries serve all slots")


CHECKS: Sequence[HealthCheck[RedisServer]] = (
    *(version, role, eviction, memory, persistence, persistence_works, min_replicas, replicas, timeout, protected),
    *(clients, slow_scripts, clock, cluster),
)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    address = of_url(url, request_timeout)
    servers = _servers(address, request_timeout)
    with ExitStack() as stack:
        subjects = [(RedisServer(server, request_timeout, address), server.place) for server in servers]
        for subject, _ in subjects:
            stack.callback(subject.close)
        several = len(subjects) > 1
        yield [Examination(subject, CHECKS, place if several else "") for subject, place in subjects]


def _servers(address: RedisAddress, request_timeout: float) -> list[Server]:
    """The servers that grant: the one, the primary that sentinels name, or all primaries of a cluster."""
    if isinstance(address.primary, SentinelService):
        return [_primary(address.primary, request_timeout)]
    if not address.seeds:
        return [address.primary]
    seed = RedisServer(address.primary, request_timeout, address)
    try:
        nodes = seed.client.execute_command("CLUSTER", "SLOTS")
    finally:
        seed.close()
    primaries = {_text(where).rpartition(":")[::2] for where in _primaries(nodes)}
    return [address.primary.at(host, int(port)) for host, port in sorted(primaries)]


def _primaries(slots: Any) -> Iterator[str]:
    """`host:port` of each primary, from what redis-py makes of CLUSTER SLOTS."""
    for each in slots.values() if isinstance(slots, dict) else slots:
        host, port = (each["primary"][:2]) if isinstance(each, dict) else each[2][:2]
        yield f"{_text(host)}:{port}"


def _primary(service: SentinelService, request_timeout: float) -> Server:
    redis = need_redis_py()
    last: Exception | None = None
    for sentinel in service.sentinels:
        pool = redis.ConnectionPool(
            connection_class=getattr(redis.connection, sentinel.kind),
            **{**sentinel.options, "socket_timeout": request_timeout},
        )
        try:
            found = redis.Redis(connection_pool=pool).execute_command(
                "SENTINEL", "GET-MASTER-ADDR-BY-NAME", service.service
            )
            if found:
                return service.server.at(_text(found[0]), int(found[1]))
        except redis.RedisError as error:
            last = error
        finally:
            pool.disconnect()
    raise ConnectionError(f"no sentinel names a primary of {service.service!r}: {last}")
