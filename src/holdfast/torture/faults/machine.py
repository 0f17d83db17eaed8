"""Faults of the engine's machine: its disk is full, slow or hangs, its processor is busy."""

from __future__ import annotations

from ..engines import TorturedEngine
from ..sandbox.cgroup import why_not as no_cgroup
from ..sandbox.disk import why_not as no_disk
from ..sandbox.server import ServerNode, process_tree
from ..sandbox.slow_disk import slow_disk
from ..sandbox.slow_disk import why_not as no_strace
from .model import FaultContext, FaultKind


def disk_full(context: FaultContext) -> None:
    engine = context.engine
    assert engine is not None
    disks = {f"node:{node.name}": disk for node in engine.nodes for disk in engine.disks if disk.folder == node.folder}
    target, disk = context.chance.choice(list(disks.items()) or [("engine", engine.disks[0])])
    with context.during("disk-full", target):
        disk.fill()
        try:
            context.last(2 * context.ttl, 6 * context.ttl)
        finally:
            disk.clear()
            for node in engine.nodes:
                if not node.running:  # some servers end themselves when they cannot write
                    node.kill()
                    node.start()
                node.repair()
    context.ending.wait(engine.recovery_s)


def starve_node(context: FaultContext) -> None:
    engine = context.engine
    assert engine is not None
    node = context.chance.choice(engine.nodes)
    group = context.cpu_quota(engine.sandbox)
    with context.during("starve-node", f"node:{node.name}"):
        pids = [pid for pid, _ in process_tree(node.pid)]
        group.throttle(pids)
        try:
            context.last(2 * context.ttl, 6 * context.ttl)
        finally:
            group.restore([pid for pid, _ in process_tree(node.pid)])


def slow_fsync(context: FaultContext) -> None:
    _flushes(context, "slow-fsync", context.chance.uniform(0.02, 0.3), None)


def hung_fsync(context: FaultContext) -> None:
    """Of the leader, where there is one: it is deposed and does not know it."""
    engine = context.engine
    assert engine is not None
    _flushes(context, "hung-fsync", HANG_S, None if engine.leader is None else engine.leader())


def _flushes(context: FaultContext, fault: str, delay_s: float, node: ServerNode | None) -> None:
    engine = context.engine
    assert engine is not None
    node = node or context.chance.choice(engine.nodes)
    with context.during(fault, f"node:{node.name}"), slow_disk(engine.sandbox, node, delay_s):
        context.last(2 * context.ttl, 8 * context.ttl)
    context.ending.wait(engine.recovery_s)


def _no_flush(engine: TorturedEngine) -> str:
    return no_strace() or ("" if engine.flushes else "this engine was not started so that it flushes")


def _no_disk(engine: TorturedEngine) -> str:
    return no_disk() or ("" if engine.disks else "this engine was not started on a small disk")


HANG_S = 120.0

KINDS = (
    FaultKind(
        "disk-full", "no byte is left on the server's disk", "engine", disk_full, _no_disk, restarts=True, weight=0.7
    ),
    FaultKind(
        "slow-fsync", "each flush of a server takes 20 to 300 ms longer", "engine", slow_fsync, _no_flush, weight=0.7
    ),
    FaultKind(
        "hung-fsync", "flushes of a server, the leader if any, hang", "engine", hung_fsync, _no_flush, weight=0.5
    ),
    FaultKind(
        "starve-node", "a server gets 2 % of a processor", "engine", starve_node, lambda engine: no_cgroup(), weight=0.7
    ),
)
