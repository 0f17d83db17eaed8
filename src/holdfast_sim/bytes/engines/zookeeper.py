"""ZooKeeper: one server, or an ensemble of three."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast._core.flow import Flow
from holdfast.backends.zookeeper.engine import open_engine
from holdfast.ports import Opened

from ...servers.zookeeper import Ensemble, EnsembleSettings, Member
from ...servers.zookeeper.tree import SPECIAL, is_session
from ..machine import Listener
from .base import SimulatedEngine

if TYPE_CHECKING:
    from ..process import ClientProcess
    from ..world import ByteWorld

TICK_MS = 500
CONTAINER_CHECK_S = 1.0
ROOT = "/holdfast"
KEPT = frozenset({ROOT, ROOT + "/%clock", ROOT + "/%rates", ROOT + "/%rates/rate"})
"""Nodes that stay for ever."""
SLOW_DISK_S = 0.3


class SimulatedZooKeeper(SimulatedEngine):
    name = "zookeeper"
    ttls = (1.0, 2.0, 3.0)
    remains_s = 10.0
    """A session, until it expires; and a ghost, which is over by the calendar of a leader that may be behind."""
    after_close_s = 0.2
    most_connections = 4
    """One for each ttl in use, and one for what is asked on behalf of nobody."""
    most_tasks = 1 + most_connections

    def __init__(self, world: ByteWorld) -> None:
        super().__init__(world)
        count = world.chance.choice((1, 3, 3))
        hosts = [world.host(f"z{number}") for number in range(1, count + 1)]
        slow = world.chance.choice((0.0, 0.0, 0.02))
        settings = EnsembleSettings(
            tick_ms=TICK_MS,
            sync_limit_ticks=world.chance.choice((5, 10)),
            container_check_s=CONTAINER_CHECK_S,
            link_s=(0.0001, 0.002),
            fsync_s=(0.0, slow),
            election_s=(0.05, 0.3),
        )
        self._ensemble = Ensemble(hosts, settings)
        self._members: dict[str, Member] = {}
        for host, member in zip(hosts, self._ensemble.members, strict=True):
            self._members[host.name] = member
            self.listen(Listener(host, member))

    def open(self, process: ClientProcess) -> Flow[Opened[Any, Any]]:
        url = "zookeeper://" + ",".join(f"{listener.host.name}:2181" for listener in self.listeners)
        return open_engine(url, "holdfast", self.world.profile.request_timeout).open()

    # Faults

    def wipe(self, seconds: float, backup: bool) -> None:
        """Never from a backup: that would bring claims back which were released, on sessions that still live, and
        nobody promises to notice."""
        super().wipe(seconds, False)

    def begin_hang(self, listener: Listener) -> None:
        self._members[listener.host.name].hang()

    def end_hang(self, listener: Listener) -> None:
        member = self._members[listener.host.name]
        if member.machine.hung:
            member.go_on()

    def special_fault(self, seconds: float) -> None:
        world, ensemble = self.world, self._ensemble
        member = world.chance.choice(ensemble.members)
        timeline = world.timeline
        if len(ensemble.members) > 1 and world.chance.random() < 0.6:
            if world.chance.random() < 0.5 and ensemble.leader is not None:
                member = ensemble.leader
            world.fault("server isolated")
            world.trace(f"z{member.number}", "is cut off from the others for {:.3f} s", seconds)
            ensemble.isolate(member)
            timeline.at(timeline.now + seconds, ensemble.rejoin, member)
        else:
            world.fault("disk slow")
            world.trace(f"z{member.number}", "has a slow disk for {:.3f} s", seconds)
            member.fsync_s = 0.0, SLOW_DISK_S
            timeline.at(timeline.now + seconds, self._speed_up, member)

    def _speed_up(self, member: Member) -> None:
        member.fsync_s = self._ensemble.settings.fsync_s

    def end_faults(self) -> None:
        super().end_faults()
        for member in self._ensemble.members:
            self._ensemble.rejoin(member)
            self._speed_up(member)

    # What may be left

    def _leader(self) -> Member:
        leader = self._ensemble.leader
        assert leader is not None, "an ensemble without faults has a leader"
        return leader

    def leftovers(self) -> list[str]:
        """Without what is remembered of holds that did not end cleanly: it stays for a day."""
        nodes = self._leader().tree.nodes
        notes = [path for path in nodes if "/~last." in path]
        kept = {*SPECIAL, *KEPT, *notes, *(note.rpartition("/")[0] for note in notes)}
        return [path for path in nodes if path and path not in kept]

    def is_settled(self) -> bool:
        """No session is left without its connection."""
        connections = sum(process.open_connections for process in self.world.processes if not process.crashed)
        return len(self._leader().tree.sessions) <= connections

    def growth(self) -> dict[str, tuple[int, int]]:
        most = self.most_connections * sum(not process.crashed for process in self.world.processes)
        watches = sum(member.tree.watches.count for member in self._ensemble.members)
        return {"sessions": (len(self._leader().tree.sessions), most), "watches": (watches, most)}

    def after_close(self) -> dict[str, int]:
        owned = sum(is_session(node.owner) for node in self._leader().tree.nodes.values())
        return {"sessions": len(self._leader().tree.sessions), "ephemeral nodes": owned}
