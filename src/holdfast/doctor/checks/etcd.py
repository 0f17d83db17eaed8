"""etcd: whether every member is well, follows closely, has a quick disk and room, and who may write.

Asked over the gateway (JSON over HTTP) that locks use, too, and by the page of metrics; nothing is written. Each member
is asked by itself: one that lags or hangs is hidden behind the others.
"""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ...backends.etcd.address import ClusterAddress, parse
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, unknown, warning

OLDEST, SUPPORTED = (3, 4), (3, 5)
DEPOSED = {(3, 4): 30, (3, 5): 13}
"""The first patch with a mend for leases of a leader that was deposed and does not know it (etcd-io/etcd#15247)."""
LAG_COUNT = 1000
SLOW_FSYNC_S, BAD_FSYNC_S = 0.01, 0.1
GUEST_ERRORS = (400, 401, 403)


class EtcdMember:
    """One member, and what it said."""

    def __init__(self, address: ClusterAddress, host: str, port: int, request_timeout: float) -> None:
        self.address = address
        self.place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._base = f"http{'s' * address.tls}://{self.place}"
        self._timeout = request_timeout

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        if not self.address.tls:
            return None
        options = self.address.options
        context = ssl.create_default_context(cafile=options.get("ca"))
        context.check_hostname = "name" not in options
        if "cert" in options:
            context.load_cert_chain(options["cert"], options.get("key"))
        return context

    @cached_property
    def token(self) -> str:
        """Of the user of the URL; empty without one."""
        if not self.address.user:
            return ""
        return str(self._ask("auth/authenticate", name=self.address.user, password=self.address.password)["token"])

    def ask(self, path: str, **body: object) -> dict[str, Any]:
        """One request; as the user of the URL."""
        return self._ask(path, self.token, **body)

    def _ask(self, path: str, token: str = "", **body: object) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._base}/v3/{path}", json.dumps(body).encode())
        if token:
            request.add_header("Authorization", token)
        with urllib.request.urlopen(request, timeout=self._timeout, context=self._tls) as answer:
            said: dict[str, Any] = json.load(answer)
            return said

    @cached_property
    def status(self) -> dict[str, Any]:
        return self.ask("maintenance/status")

    @cached_property
    def metrics(self) -> str:
        with urllib.request.urlopen(f"{self._base}/metrics", timeout=self._timeout, context=self._tls) as answer:
            text: str = answer.read().decode()
            return text

    def metric(self, name: str) -> float | None:
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", self.metrics, re.MULTILINE)
        return None if found is None else float(found[1])

    def quantile(self, name: str, part: float) -> float | None:
        """Of a histogram: the upper bound of the bucket that it is in; None if nothing was counted."""
        buckets = re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\S+)$', self.metrics, re.MULTILINE)
        count = max((float(value) for _, value in buckets), default=0.0)
        return next((float(bound) for bound, value in buckets if float(value) >= part * count), None) if count else None

    @property
    def guest_may_read(self) -> bool:
        """Whether a key can be read by somebody without a name; before 3.5 nothing else tells."""
        try:
            self._ask("kv/range", key="AA==", count_only=True)
        except urllib.error.HTTPError as error:
            if error.code in GUEST_ERRORS:
                return False
            raise
        return True

    @property
    def version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", str(self.status["version"]))[:3])


class EtcdCluster:
    """All members that the URL names."""

    def __init__(self, members: list[EtcdMember]) -> None:
        self.members = members

    @cached_property
    def silent(self) -> dict[str, str]:
        """Members that do not answer, and why."""
        found = {}
        for member in self.members:
            try:
                member.status  # noqa: B018  it is read here, and kept
            except (OSError, ValueError, KeyError) as error:
                found[member.place] = str(error)
        return found

    @property
    def answering(self) -> list[EtcdMember]:
        return [member for member in self.members if member.place not in self.silent]


@check("etcd.members")
def members(cluster: EtcdCluster) -> CheckResult:
    if not cluster.answering:
        return unknown("; ".join(f"{place}: {why}" for place, why in cluster.silent.items()))
    known = cluster.answering[0].ask("cluster/member/list", linearizable=False)["members"]
    voters = [member for member in known if not member.get("isLearner")]
    if cluster.silent:
        seen = "; ".join(f"{place} does not answer: {why}" for place, why in cluster.silent.items())
        return failed(seen) if len(cluster.answering) <= len(voters) // 2 else warning(seen)
    if len(voters) == 1:
        return warning("the cluster has one member: when it is away nothing can be locked")
    if len(voters) % 2 == 0:
        return warning(f"the cluster has {len(voters)} voting members: one fewer would bear as many failures")
    if len(cluster.members) == 1:
        return warning(f"the URL names one of {len(voters)} members: when that one is away nothing can be locked")
    return fine(f"{len(cluster.answering)} of {len(voters)} members are named, and all of them answer")


@check("etcd.one-cluster")
def one_cluster(cluster: EtcdCluster) -> CheckResult | None:
    if len(cluster.answering) < 2:
        return None
    numbers = {str(member.status["header"]["cluster_id"]) for member in cluster.answering}
    if len(numbers) > 1:
        return failed(f"the members belong to {len(numbers)} clusters")
    return fine("all members belong to one cluster")


@check("etcd.auth")
def auth(cluster: EtcdCluster) -> CheckResult:
    if not cluster.answering:
        return unknown("no member answers")
    member = cluster.answering[0]
    if member.guest_may_read:
        return warning("authentication is off: whoever reaches it may write every key")
    if not member.token:
        return fine("authentication is on")
    if member.token.count(".") == 2:
        return fine("authentication is on, with tokens of JWT")
    return warning("authentication is on, with simple tokens, which a member forgets when it restarts")


CLUSTER_CHECKS: Sequence[HealthCheck[EtcdCluster]] = (members, one_cluster, auth)


@check("etcd.version")
def version(member: EtcdMember) -> CheckResult:
    seen = f"the version is {member.status['version']}"
    number = member.version
    if number < OLDEST:
        return failed(seen)
    patch = DEPOSED.get((number[0], number[1]))
    if patch is not None and number[2] < patch:
        return warning(f"{seen}; before {'.'.join(map(str, number[:2]))}.{patch} a deposed leader goes on with leases")
    return warning(seen) if number < SUPPORTED else fine(seen)


@check("etcd.leader")
def leader(member: EtcdMember) -> CheckResult:
    if not int(member.status.get("leader", 0)):
        return failed("it knows of no leader")
    errors = member.status.get("errors")
    return failed(f"it says of itself: {', '.join(errors)}") if errors else fine("it knows the leader")


@check("etcd.lag")
def lag(member: EtcdMember) -> CheckResult:
    behind = int(member.status.get("raftIndex", 0)) - int(member.status.get("raftAppliedIndex", 0))
    seen = f"it has {behind} entries to apply"
    return warning(seen) if behind > LAG_COUNT else fine(seen)


@check("etcd.disk")
def disk(member: EtcdMember) -> CheckResult:
    p99 = member.quantile("etcd_disk_wal_fsync_duration_seconds", 0.99)
    if p99 is None:
        return unknown("no write to disk has been counted yet")
    seen = f"1 in 100 writes to disk took {1000 * p99:g} ms or longer"
    return failed(seen) if p99 > BAD_FSYNC_S else warning(seen) if p99 > SLOW_FSYNC_S else fine(seen)


@check("etcd.quota")
def quota(member: EtcdMember) -> CheckResult:
    alarms = [str(alarm.get("alarm")) for alarm in member.ask("maintenance/alarm", action="GET").get("alarms", ())]
    if alarms:
        return failed(f"there is an alarm: {', '.join(sorted(set(alarms)))}")
    size, limit = int(member.status.get("dbSize", 0)), member.metric("etcd_server_quota_backend_bytes")
    if not limit:
        return unknown("the quota is not told")
    seen = f"{size} of {int(limit)} bytes are used"
    return failed(seen) if size >= limit else warning(seen) if size > 0.8 * limit else fine(seen)


MEMBER_CHECKS: Sequence[HealthCheck[EtcdMember]] = (version, leader, lag, disk, quota)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    address = parse(url)
    found = [EtcdMember(address, host, port, request_timeout) for host, port in address.hosts]
    cluster = EtcdCluster(found)
    alone = len(found) == 1
    each = [Examination(member, MEMBER_CHECKS, "" if alone else member.place) for member in cluster.answering]
    yield [Examination(cluster, CLUSTER_CHECKS), *each]
