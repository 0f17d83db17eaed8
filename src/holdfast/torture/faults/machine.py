"""What happens to the machine under an engine: its disk is full, its processor is busy elsewhere."""

from __future__ import annotations

from ..arena.cgroup import why_not as no_cgroup
from ..arena.disk import why_not as no_disk
from ..arena.node import family
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


def _no_disk(engine: Engine) -> str:
    return no_disk() or ("" if engine.disks else "this engine was not started on a small disk")


KINDS = (
    Kind("disk-full", "no byte is left on the server's disk", "engine", disk_full, _no_disk, restarts=True, weight=0.7),
    Kind(
        "starve-node", "a server gets 2 % of a processor", "engine", starve_node, lambda engine: no_cgroup(), weight=0.7
    ),
)
