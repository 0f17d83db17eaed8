"""Three etcd members on loopback, data on a RAM disk. Its peers are locks on etcd.

The unit of the pair is two transactions by hand; that of the hand-off is one raw write. Requests are counted by etcd
itself, over all members. `etcd_disk` is the same with data on the disk, written before each reply.
"""

from __future__ import annotations

import re
import shutil
import socket
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import verdicts
from bench.limits import Finding, Limit
from bench.model import Engine, Layout, Target
from bench.outcomes import HandoffResult, LeasesResult, PairResult, Report
from tests.etcd.cluster import running

RAM = "/dev/shm"
WRITE = "bare write"
PEERS = ("etcd3gw", "tooz etcd3gw", "aetcd", "etcd3")
_COUNTED = re.compile(r'^grpc_server_started_total\{grpc_method="(\w+)".*\} (\d+)', re.MULTILINE)


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    with _memory() as under, running(under=under) as cluster:
        leader = cluster.leader()
        order = [leader, *(member for member in cluster.members if member is not leader)]
        yield Target(url=cluster.url_of(*order), folder=folder)


@contextmanager
def _memory() -> Iterator[str | None]:
    """A folder in memory, where there is one."""
    if not Path(RAM).is_dir():
        yield None
        return
    folder = tempfile.mkdtemp(prefix="hf-bench-etcd-", dir=RAM)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def endpoints(target: Target) -> list[tuple[str, int]]:
    found = []
    for place in target.url.removeprefix("etcd://").split(","):
        host, _, port = place.partition(":")
        found.append((host, int(port)))
    return found


def connect(target: Target) -> socket.socket:
    """To the leader, which answers first."""
    link = socket.create_connection(endpoints(target)[0])
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def requests(target: Target) -> int:
    """What clients have asked of all members so far. Watches and keep-alives are requests too."""
    total = 0
    for host, port in endpoints(target):
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=5) as reply:
            total += sum(int(count) for _, count in _COUNTED.findall(reply.read().decode()))
    return total


def _pair(report: Report, name: str) -> PairResult | None:
    return next((each for each in report.pair if each.contender == name), None)


def _client_cpu(report: Report) -> Finding | None:
    ours = _pair(report, "holdfast")
    return Finding(f"≤ 3.0: {ours.ratio_cpu:.2f}", ours.ratio_cpu <= 3.0) if ours else None


def _fastest_peer(report: Report) -> Finding | None:
    ours, peers = _pair(report, "holdfast"), [each for each in report.pair if each.contender in PEERS]
    if ours is None or not peers:
        return None
    fastest = min(peers, key=lambda each: each.p50)
    ratio = fastest.ratio / ours.ratio
    return Finding(f"≥ 1.6: {ratio:.2f} ({fastest.contender})", ratio >= 1.6)


def _handoff(title: str, layout: Layout, judge: Callable[[HandoffResult, PairResult], Finding]) -> Limit:
    def find(report: Report) -> Finding | None:
        there = [each for each in report.handoff if each.layout == str(layout) and each.hold == 0.005]
        ours = next((each for each in there if each.contender == "holdfast"), None)
        write = _pair(report, WRITE)
        return judge(ours, write) if ours and write else None

    return Limit(f"{title}, {layout}, hold 5 ms", find)


def _gap(ours: HandoffResult, write: PairResult) -> Finding:
    ratio = ours.handed_p50 / write.p50
    return Finding(f"≤ 2.0: {ratio:.2f}", ratio <= 2.0)


def _requests(ours: HandoffResult, write: PairResult) -> Finding:
    found = ours.commands or 0.0
    return Finding(f"≤ 5: {found:.2f}", found <= 5)


def _kept(report: Report) -> Finding | None:
    ours: LeasesResult | None = next((each for each in report.leases if each.contender == "holdfast"), None)
    return Finding(f"< 2 %: {ours.cpu * 100:.2f} %", ours.cpu < 0.02) if ours else None


LAYOUTS = (Layout(1, 8), Layout(1, 64), Layout(8, 1))
LIMITS = (
    verdicts.pair_at_most(1.2),
    Limit("client CPU of a pair, × plain HTTP", _client_cpu),
    Limit("the fastest peer's pair, × holdfast's", _fastest_peer),
    *(
        _handoff(title, layout, judge)
        for layout in LAYOUTS
        for title, judge in (("hand-off gap p50, × one raw write", _gap), ("requests for each acquisition", _requests))
    ),
    Limit("10,000 held locks: share of a core", _kept),
)
ENGINE = Engine("etcd", start, LAYOUTS, requests, "requests", limits=LIMITS, best_peers=("etcd3gw",))
