"""Partitions with real processes: what moves when one joins, leaves, is killed or stopped, and how long that takes.

`python -m bench.partition_group [--url URL] [--processes 50] [--shards 1024] [--ttl 10] [--json FILE]`; the engine is
an SQLite file of its own unless a URL is given. Each process works on its shards behind a fence (`partition_member`).

Counted: shards that were started again, against the least that must move; the time until every shard is owned again, as
a multiple of the ttl; times in which two processes believed, in good faith, to own a shard; tokens that went back;
late writes that were refused and accepted; updates that were acknowledged and lost.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import holdfast
from holdfast.clock import now
from holdfast.recipes.partition_plan import ShardPlan, make_plan
from holdfast.recipes.partition_spec import read_partition

POLL_S = 0.05
HANG_S = 300.0


@dataclass(slots=True)
class Phase:
    """One event: what moved, and how long it took until all shards were owned, and all was settled."""

    event: str
    moved: int
    least: int
    owned_s: float
    settled_s: float
    owned_ttls: float


@dataclass(slots=True)
class GroupReport:
    """What a run has shown."""

    engine: str
    processes: int
    shards: int
    ttl: float
    phases: list[Phase] = field(default_factory=list)
    overlaps: int = 0
    tokens_back: int = 0
    late_refused: int = 0
    late_accepted: int = 0
    updates: int = 0
    updates_lost: int = 0
    unexpected_losses: int = 0
    """Leases that were lost although nothing was done to their holders: the machine was too busy."""


class ProcessGroup:
    """The processes and what they have logged."""

    def __init__(self, url: str, shards: int, ttl: float, folder: Path, fenced: bool) -> None:
        self._fenced = fenced
        self._url, self._shards, self._ttl, self._folder = url, shards, ttl, folder
        self._locks = holdfast.connect(url, request_timeout=30)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ends: dict[int, float] = {}
        """When processes were killed or stopped: from then on they are not to blame."""
        self._data = folder / "data.db"
        with closing(sqlite3.connect(self._data)) as data:
            data.execute("PRAGMA journal_mode = wal")
            data.execute("CREATE TABLE number (shard INTEGER PRIMARY KEY, value INTEGER)")
            data.executemany("INSERT INTO number VALUES (?, 0)", [(shard,) for shard in range(shards)])
            data.commit()

    def join(self) -> int:
        """One more process; answers with its number."""
        number = len(self._processes)
        words = [sys.executable, "-m", "bench.partition_member", self._url, str(self._shards), str(self._ttl)]
        words += [str(self._folder / f"{number}.log"), str(self._data)]
        words.append("fenced" if self._fenced else "unfenced")
        self._processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL))
        return number

    def signal(self, number: int, kind: signal.Signals) -> None:
        """Send it a signal."""
        process = self._processes[number]
        process.send_signal(kind)
        if kind is signal.SIGKILL:
            process.wait()
            self._ends[number] = now()

    def blameless(self, number: int) -> None:
        """From now on it cannot know what happens to its shards."""
        self._ends[number] = now()

    def wakes(self, number: int) -> None:
        """It knows again."""
        del self._ends[number]

    def events(self, number: int) -> list[tuple[float, str, int, int]]:
        """What a process has logged; of a line that was not finished, nothing."""
        log = self._folder / f"{number}.log"
        if not log.exists():
            return []
        lines = log.read_text().split("\n")[:-1]
        return [(line[0], line[1], line[2], line[3]) for line in map(json.loads, lines)]

    def starts(self) -> int:
        """How often a shard was started, by all processes together, once all that live have logged what they own."""
        end = time.monotonic() + HANG_S
        while True:
            found = {number: self.events(number) for number in range(len(self._processes))}
            working = sum(_working(found[number]) for number in found if number not in self._ends)
            if working == self._shards:
                return sum(event[1] == "start" for events in found.values() for event in events)
            assert time.monotonic() < end, f"{working} of {self._shards} shards are worked on"
            time.sleep(POLL_S)

    def until(self, number: int, what: str) -> None:
        """Wait until a process has logged something."""
        end = time.monotonic() + HANG_S
        while not any(event[1] == what for event in self.events(number)):
            assert time.monotonic() < end, f"process {number} has never logged {what!r}"
            time.sleep(POLL_S)

    def look(self) -> ShardPlan:
        """What the engine shows."""
        views = [*self._locks.survey("group/members/"), *self._locks.survey("group/shards/")]
        found = read_partition("group", views)
        return make_plan({each.id: each.weight for each in found.members}, found.owner_ids(self._shards), self._shards)

    def settle(self, members: int) -> tuple[float, float]:
        """Wait until so many members own all shards; since the call, when all were owned, and when all was settled."""
        began, owned = time.monotonic(), 0.0
        while True:
            plan = self.look()
            gone = set(plan.owned) - set(plan.quotas)
            took = time.monotonic() - began
            if not plan.free and not gone and len(plan.quotas) == members:
                owned = owned or took
                if plan.settled:
                    return owned, took
            else:
                owned = 0.0
            assert took < HANG_S, f"not settled: {len(plan.quotas)} members, {len(plan.free)} free shards"
            time.sleep(POLL_S)

    def stop_all(self) -> None:
        """A clean end of all that live."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self._processes:
            process.wait(HANG_S)
        self._locks.close()

    def kill_all(self) -> None:
        """After a failure: nothing is left behind."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def judge(self, report: GroupReport) -> None:
        """Go through all logs, and see what must not be."""
        spans: dict[int, list[tuple[int, float, float]]] = {}
        added: Counter[int] = Counter()
        for number in range(len(self._processes)):
            events = self.events(number)
            stopped = [at for at, what, _, _ in events if what == "stopped"]
            blameless = self._ends.get(number, stopped[0] if stopped else float("inf"))
            open_spans: dict[int, tuple[int, float]] = {}
            for at, what, shard, token in events:
                if what == "start":
                    open_spans[shard] = (token, at)
                elif what in ("end", "lost") and shard in open_spans:
                    began = open_spans.pop(shard)
                    spans.setdefault(shard, []).append((*began, min(at, blameless) if began[1] < blameless else at))
                    report.unexpected_losses += what == "lost" and at < blameless
                elif what == "added":
                    added[shard] += 1
                report.late_refused += what == "refused"
                report.late_accepted += what == "accepted"
            for shard, began in open_spans.items():
                spans.setdefault(shard, []).append((*began, blameless))
        for shard in spans:
            by_start = sorted(spans[shard], key=lambda span: span[1])
            for before, after in pairwise(by_start):
                report.overlaps += after[1] < before[2]
                report.tokens_back += after[0] <= before[0]
        with closing(sqlite3.connect(self._data)) as data:
            values = dict(data.execute("SELECT shard, value FROM number").fetchall())
        report.updates = sum(added.values())
        report.updates_lost = sum(max(0, count - values[shard]) for shard, count in added.items())


def run(url: str, processes: int, shards: int, ttl: float, folder: Path, fenced: bool = True) -> GroupReport:
    """Start, join, leave, kill, stop. Without the fence, a late write is accepted: that is planted."""
    report = GroupReport(url.partition("://")[0], processes, shards, ttl)
    group = ProcessGroup(url, shards, ttl, folder, fenced)

    def phase(event: str, members: int, least: int, before: int) -> None:
        owned, settled = group.settle(members)
        moved = group.starts() - before
        report.phases.append(Phase(event, moved, least, round(owned, 2), round(settled, 2), round(owned / ttl, 2)))
        print(report.phases[-1], file=sys.stderr)

    try:
        for _ in range(processes):
            group.join()
        phase(f"{processes} start", processes, shards, 0)
        plan = group.look()
        wider = make_plan({**dict.fromkeys(plan.quotas, 1), "~": 1}, _owners(plan), shards)
        before = group.starts()
        joined = group.join()
        phase("one joins", processes + 1, wider.quotas["~"], before)
        before, owned = group.starts(), _working(group.events(joined))
        group.signal(joined, signal.SIGTERM)
        phase("one leaves", processes, owned, before)
        before, owned = group.starts(), _working(group.events(0))
        group.signal(0, signal.SIGKILL)
        phase("one is killed", processes - 1, owned, before)
        before, owned = group.starts(), _working(group.events(1))
        group.signal(1, signal.SIGUSR1)
        group.until(1, "stopped")
        group.blameless(1)
        phase("one is stopped", processes - 2, owned, before)
        before = group.starts()
        least = make_plan({**dict.fromkeys(group.look().quotas, 1), "~": 1}, _owners(group.look()), shards).quotas["~"]
        group.signal(1, signal.SIGCONT)
        group.until(1, "late")
        group.wakes(1)
        phase("it wakes up", processes - 1, least, before)
        group.stop_all()
        group.judge(report)
    finally:
        group.kill_all()
    return report


def _owners(plan: ShardPlan) -> dict[int, str]:
    """Shares as they are: which shards does not matter."""
    owners = [member for member, count in plan.owned.items() for _ in range(count)]
    return dict(enumerate(owners))


def _working(events: list[tuple[float, str, int, int]]) -> int:
    """How many shards a process works on, by its log."""
    kinds = Counter(event[1] for event in events)
    return kinds["start"] - kinds["end"] - kinds["lost"]


def table(report: GroupReport) -> str:
    """For a person."""
    lines = [
        f"{report.processes} processes, {report.shards} shards, ttl {report.ttl:g} s, {report.engine}",
        f"{'event':<16}{'moved':>8}{'least':>8}{'all owned':>12}{'in ttls':>10}{'settled':>10}",
    ]
    lines += [
        f"{each.event:<16}{each.moved:>8}{each.least:>8}{each.owned_s:>10.2f} s{each.owned_ttls:>10.2f}"
        f"{each.settled_s:>8.2f} s"
        for each in report.phases
    ]
    lines.append(
        f"overlaps {report.overlaps}, tokens that went back {report.tokens_back}, late writes refused "
        f"{report.late_refused} and accepted {report.late_accepted}, updates {report.updates}, of which "
        f"{report.updates_lost} were lost"
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.partition_group", description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--shards", type=int, default=1024)
    parser.add_argument("--ttl", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = words.url or f"sqlite://{folder}/locks.db"
        report = run(url, words.processes, words.shards, words.ttl, Path(folder))
    print(table(report))
    if words.json is not None:
        words.json.write_text(json.dumps(asdict(report), indent=2) + os.linesep)
    return 1 if report.overlaps or report.tokens_back or report.late_accepted or report.updates_lost else 0


if __name__ == "__main__":
    sys.exit(main())
