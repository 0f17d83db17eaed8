"""kazoo's `SetPartitioner`, used as its manual shows, one client for each member.

It waits until the group has been stable for `time_boundary` seconds, 30 unless it is told otherwise. On each change all
members let go of everything, wait for that time, and divide all shards anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from bench.engines.zookeeper import address
from bench.model import Target
from bench.tool_model import PartitionContender, PartitionPlan

CONTENDERS = ()
SHORT_BOUNDARY_S, DEFAULT_BOUNDARY_S = 1, 30
NOTE = "stops everybody on each change; no token, so nothing refuses what a stopped member writes late"


def _member(
    target: Target, plan: PartitionPlan, tell: Callable[[str, int], None], over: threading.Event, boundary: int
) -> None:
    from kazoo.client import KazooClient

    host, port = address(target)
    client = KazooClient(f"{host}:{port}", timeout=plan.ttl)
    client.start(20)
    tell("joins", 0)
    changed = threading.Event()
    partitioner = client.SetPartitioner(
        f"/kazoo/partitions-{boundary}",
        set=tuple(range(plan.shards)),
        identifier=f"member-{os.getpid()}",
        time_boundary=boundary,
        state_change_event=changed,
    )
    owned: list[int] = []

    def end() -> None:
        for shard in owned:
            tell("end", shard)
        owned.clear()

    while not over.is_set():
        changed.clear()
        if partitioner.failed:
            raise RuntimeError("the partitioner has failed, which is final")
        if partitioner.release:
            end()
            partitioner.release_set()
        elif partitioner.acquired and not owned:
            owned += partitioner
            for shard in owned:
                tell("start", shard)
        changed.wait(0.05)
    end()
    partitioner.finish()
    client.stop()
    client.close()


def short(target: Target, plan: PartitionPlan, tell: Callable[[str, int], None], over: threading.Event) -> None:
    _member(target, plan, tell, over, SHORT_BOUNDARY_S)


def default(target: Target, plan: PartitionPlan, tell: Callable[[str, int], None], over: threading.Event) -> None:
    _member(target, plan, tell, over, DEFAULT_BOUNDARY_S)


PARTITIONS = (
    PartitionContender(f"kazoo SetPartitioner, time_boundary={SHORT_BOUNDARY_S}", "peer", short, note=NOTE),
    PartitionContender("kazoo SetPartitioner", "peer", default, quick=False, note=NOTE),
)
