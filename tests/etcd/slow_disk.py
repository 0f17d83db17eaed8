"""A member whose disk hangs: every fdatasync of its log takes longer than the test, made so by strace.

Only that of its write-ahead log: then its raft loop hangs, and everything that it answers by itself goes on. With its
database's, it would answer nothing any more, and nobody would take it for a leader.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.etcd.cluster import Cluster, Member, await_true

HANGS_S = 120


@contextmanager
def hanging_disk(member: Member) -> Iterator[None]:
    """etcd has to have been started with fsync. Reads, timers and the network of the member go on."""
    assert member.process is not None
    words = ["strace", "-f", "-p", str(member.process.pid), "-e", f"inject=fdatasync:delay_enter={HANGS_S}s"]
    for log in (member.folder / f"m{member.number}" / "member" / "wal").glob("*.wal"):
        words += ["-P", str(log)]
    with (member.folder / f"strace{member.number}").open("wb+") as story:
        strace = subprocess.Popen(words, stdout=story, stderr=story, stdin=subprocess.DEVNULL)
        try:
            await_true(lambda: b"attached" in (member.folder / story.name).read_bytes(), "strace to attach")
            yield
        finally:
            strace.send_signal(signal.SIGTERM)
            strace.wait(10)


def depose(cluster: Cluster, leader: Member) -> Member:
    """The leader writes once more, which hangs its raft loop; the others elect another one, without telling it."""
    with suppress(OSError):
        leader.rpc("/v3/kv/put", timeout=0.5, key="AA==", value="AA==")
    others = Cluster(cluster.folder, [member for member in cluster.members if member is not leader])
    return others.leader()
