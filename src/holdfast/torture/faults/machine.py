"""What happens to the machine under an engine: its disk is full, slow or hangs, its processor is busy elsewhere."""

from __future__ import annotations

from ..arena.cgroup import why_not as no_cgroup
from ..arena.disk import why_not as no_disk
from ..arena.node import Node, family
from ..arena.slow_disk import slow_disk
from ..arena.slow_disk import why_not as no_strace
from ..engines import Engine
from .model import Kind, Stage


def disk_full(stage: Stage) -> None:
    engine = stage.engine
    assert engine is not None
    disks = {f"node:{node.name}": disk for node in engine.nodes for disk in engine.disks if disk.folder == node.folder}
    target, disk = stage.chance.choice(list(disks.items()) or [("engine", engine.disks[0])])
    with stage.during("disk-full", target):
        disk.fill()
        try:
            stage.last(2 * stage.ttl, 6 * stage.ttl)
        finally:
            disk.clear()
            for node in engine.nodes:
                if not node.running:  # some servers end themselves when they cannot write
                    node.kill()
                    node.start()
                node.mend()
    stage.ending.wait(engine.mends_for)


def starve_node(stage: Stage) -> None:
    engine = stage.engine
    assert engine is not None
    node = stage.chance.choice(engine.nodes)
    group = stage.starvation(engine.site)
    with stage.during("starve-node", f"node:{node.name}"):
        pids = [pid for pid, _ in family(node.pid)]
        group.starve(pids)
        try:
            stage.last(2 * stage.ttl, 6 * stage.ttl)
        finally:
            group.feed([pid for pid, _ in family(node.pid)])


def slow_fsync(stage: Stage) -> None:
    _flushes(stage, "slow-fsync", stage.chance.uniform(0.02, 0.3), None)


def hung_fsync(stage: Stage) -> None:
    """Of the leader, where there is one: it is deposed and does not know it."""
    engine = stage.engine
    assert engine is not None
    _flushes(stage, "hung-fsync", HANGS_S, None if engine.leader is None else engine.leader())


def _flushes(stage: Stage, fault: str, delay_s: float, node: Node | None) -> None:
    engine = stage.engine
    assert engine is not None
    node = node or stage.chance.choice(engine.nodes)
    with stage.during(fault, f"node:{node.name}"), slow_disk(engine.site, node, delay_s):
        stage.last(2 * stage.ttl, 8 * stage.ttl)
    stage.ending.wait(engine.mends_for)


def _no_flush(engine: Engine) -> str:
    return no_strace() or ("" if engine.flushes else "this engine was not started so that it flushes")


def _no_disk(engine: Engine) -> str:
    return no_disk() or ("" if engine.disks else "this engine was not started on a small disk")


HANGS_S = 120.0

KINDS = (
    Kind("disk-full", "no byte is left on the server's disk", "engine", disk_full, _no_disk, restarts=True, weight=0.7),
    Kind("slow-fsync", "each flush of a server takes 20 to 300 ms longer", "engine", slow_fsync, _no_flush, weight=0.7),
    Kind("hung-fsync", "flushes of a server, the leader if any, hang", "engine", hung_fsync, _no_flush, weight=0.5),
    Kind(
        "starve-node", "a server gets 2 % of a processor", "engine", starve_node, lambda engine: no_cgroup(), weight=0.7
    ),
)
