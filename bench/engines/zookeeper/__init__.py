"""Three ZooKeeper servers on loopback, data on a RAM disk. Its peers are locks on ZooKeeper.

Everybody connects to the leader. The unit of the pair is a create and a delete by hand; that of the hand-off is one raw
write. Requests are counted by the servers themselves. `zookeeper_disk` is the same with data on the disk, forced to it
before each reply.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import verdicts
from bench.limits import Finding, Limit
from bench.model import Engine, Layout, Target
from bench.outcomes import HandoffResult, LeasesResult, PairResult, Report
from tests.zookeeper.ensemble import Member, running

RAM = "/dev/shm"
WRITE = "bare write"
KAZOO = "kazoo"
TICK_MS = 2000
_COUNTED = re.compile(r"^zk_packets_received\s+(\d+)", re.MULTILINE)


@contextmanager
def start(folder: Path) -> Iterator[Target]:
    with _memory() as base, running(tick=TICK_MS, base=base) as ensemble:
        yield Target(url=f"zookeeper://127.0.0.1:{ensemble.leader.port}", folder=folder)


@contextmanager
def _memory() -> Iterator[str | None]:
    """A folder in memory, where there is one."""
    if not Path(RAM).is_dir():
        yield None
        return
    folder = tempfile.mkdtemp(prefix="hf-bench-zookeeper-", dir=RAM)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def address(target: Target) -> tuple[str, int]:
    """Of the leader."""
    host, _, port = target.url.removeprefix("zookeeper://").partition(":")
    return host, int(port)


def requests(target: Target) -> int:
    """What clients have asked of the leader so far; signs of life are requests too."""
    answer = Member(0, Path(), address(target)[1], []).say("mntr")
    found = _COUNTED.search(answer)
    assert found, f"no count in {answer!r}"
    return int(found[1])


def _pair(report: Report, name: str) -> PairResult | None:
    return next((each for each in report.pair if each.contender == name), None)


def _client_cpu(report: Report) -> Finding | None:
    ours = _pair(report, "holdfast")
    return Finding(f"≤ 4.0: {ours.ratio_cpu:.2f}", ours.ratio_cpu <= 4.0) if ours else None


def _kazoo(report: Report) -> Finding | None:
    ours, theirs = _pair(report, "holdfast"), _pair(report, KAZOO)
    if ours is None or theirs is None:
        return None
    ratio = theirs.ratio / ours.ratio
    return Finding(f"≥ 2.5: {ratio:.2f}", ratio >= 2.5)


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
    found = ours.commands or 0.0  # of a lock five; sessions are opened and kept alive in between
    return Finding(f"≤ 5.0: {found:.1f}", round(found, 1) <= 5.0)


def _kept(report: Report) -> Finding | None:
    ours: LeasesResult | None = next((each for each in report.leases if each.contender == "holdfast"), None)
    return Finding(f"< 2 %: {ours.cpu * 100:.2f} %", ours.cpu < 0.02) if ours else None


LAYOUTS = (Layout(1, 8), Layout(1, 64), Layout(8, 1))
LIMITS = (
    verdicts.pair_at_most(1.2),
    Limit("client CPU of a pair, × a raw socket's", _client_cpu),
    Limit("kazoo's pair, × holdfast's", _kazoo),
    *(
        _handoff(title, layout, judge)
        for layout in LAYOUTS
        for title, judge in (("hand-off gap p50, × one raw write", _gap), ("requests for each acquisition", _requests))
    ),
    Limit("10,000 held locks: share of a core", _kept),
)
ENGINE = Engine("zookeeper", start, LAYOUTS, requests, "requests", limits=LIMITS, best_peers=(KAZOO,))
