"""The three ways in which Redis is run: alone, behind sentinels, as a cluster; with the faults that each has.

A fail-over is that of Sentinel or of a cluster: the primary stops or is deposed, and a replica goes on with what it
has. Its link may have been cut for a while before, so that it has less. Sentinels hear of it one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.backends.redis.slots import slot_of

from ...servers.redis.cluster import Cluster, ClusterNode
from ...servers.redis.replication import Link, fail_over, follow
from ...servers.redis.sentinel import Sentinel
from ...servers.redis.server import RedisServer
from ..machine import Listener

if TYPE_CHECKING:
    from .redis import SimulatedRedis

SERVICE = "locks"
LONGEST_LAG_S = 0.05
ELECTION_S = 0.1, 0.8
"""From the end of a primary until a replica takes over."""
TELL_S = 0.3
"""No sentinel hears of a new primary later than this."""


class Deployment:
    """Some servers that keep data, and how a client finds them."""

    most_connections = 14
    """As many as requests were under way at the same moment: none is closed while it works."""
    most_tasks = 2
    own_fault_ratio = 0.0
    can_be_read_only = False
    confirmed = False
    """Grants and renewals wait until every replica has them."""

    def __init__(self, engine: SimulatedRedis) -> None:
        self._engine = engine
        self._world = engine.world
        self.servers: list[RedisServer] = []

    def url(self, user: str) -> str:
        raise NotImplementedError

    def primaries(self) -> list[RedisServer]:
        return [server for server in self.servers if not server.is_replica]

    def own_fault(self, seconds: float) -> None:
        """One that only this deployment has."""

    def end_faults(self) -> None:
        for link in self._links():
            link.mend()

    def _links(self) -> list[Link]:
        return [link for server in self.servers for link in server.replication.links]

    def _lag(self) -> float:
        return self._world.chance.random() ** 2 * LONGEST_LAG_S

    def _depose(self, old: RedisServer, seconds: float) -> None:
        """A primary stops, and is replaced a moment later; or it is replaced while it runs. Its replicas may lag."""
        chance, timeline = self._world.chance, self._world.timeline
        now = timeline.now
        end, at = now + seconds, now
        if chance.random() < 0.5:
            for link in list(old.replication.links):
                link.cut()
                timeline.at(end, link.mend)
            self._world.trace(old.address[0], "is not heard by its replicas")
            at = chance.uniform(now, end)
        if chance.random() < 0.3:
            timeline.at(at, self._take_over, old, True)
        else:
            timeline.at(at, self._stop, old, end - at)

    def _stop(self, old: RedisServer, seconds: float) -> None:
        chance, timeline = self._world.chance, self._world.timeline
        self._engine.stop(self._engine.listener_of(old), seconds, chance.random() < 0.5)
        timeline.at(timeline.now + chance.uniform(*ELECTION_S), self._take_over, old, False)

    def _take_over(self, old: RedisServer, by_order: bool) -> None:
        candidates = [link.replica for link in old.replication.links if link.replica.running]
        if old.is_replica or old.running is not by_order or not candidates or not self._world.faults_active():
            return
        new = self._world.chance.choice(candidates)
        self._world.fault("fail-over")
        self._world.trace(new.address[0], "takes over from {}", old.address[0])
        if old.running:
            self._engine.note(old)
            self._engine.listener_of(old).end_connections()
        self._replace(old, new)
        self._engine.lost_writes(old, new)

    def _replace(self, old: RedisServer, new: RedisServer) -> None:
        raise NotImplementedError


class OneServer(Deployment):
    can_be_read_only = True

    def __init__(self, engine: SimulatedRedis) -> None:
        super().__init__(engine)
        self.servers.append(engine.add_server("r1"))

    def url(self, user: str) -> str:
        return f"redis://{user}r1:6379"

    def primaries(self) -> list[RedisServer]:
        return self.servers


class BehindSentinels(Deployment):
    own_fault_ratio = 0.7

    def __init__(self, engine: SimulatedRedis) -> None:
        super().__init__(engine)
        chance = self._world.chance
        count = chance.choice((2, 2, 3))
        self.servers = [engine.add_server(f"r{number}") for number in range(1, count + 1)]
        for replica in self.servers[1:]:
            follow(replica, self.servers[0], self._lag())
        self.confirmed = chance.random() < 0.4
        self._sentinels: list[Sentinel] = []
        for number in range(1, chance.choice((1, 3)) + 1):
            sentinel, host = Sentinel(), engine.add_host(f"s{number}")
            sentinel.watch(SERVICE, self.servers[0])
            self._sentinels.append(sentinel)
            server = RedisServer(host, address=(host.name, 26379), version=engine.version, sentinel=sentinel)
            engine.listen(Listener(host, server))

    def url(self, user: str) -> str:
        hosts = ",".join(f"s{number}:26379" for number in range(1, len(self._sentinels) + 1))
        confirmed = f"?wait_replicas={len(self.servers) - 1}" if self.confirmed else ""
        return f"redis+sentinel://{user}{hosts}/{SERVICE}{confirmed}"

    def own_fault(self, seconds: float) -> None:
        [primary] = self.primaries()
        if primary.running:
            self._depose(primary, seconds)

    def _replace(self, old: RedisServer, new: RedisServer) -> None:
        fail_over(old, new)
        timeline = self._world.timeline
        for sentinel in self._sentinels:
            timeline.at(timeline.now + self._world.chance.random() * TELL_S, self._tell, sentinel)

    def _tell(self, sentinel: Sentinel) -> None:
        sentinel.watch(SERVICE, self.primaries()[0])

    def end_faults(self) -> None:
        super().end_faults()
        for sentinel in self._sentinels:
            self._tell(sentinel)


class InCluster(Deployment):
    most_connections = 32
    own_fault_ratio = 0.7

    def __init__(self, engine: SimulatedRedis) -> None:
        super().__init__(engine)
        chance = self._world.chance
        self._cluster = Cluster(gossip_s=chance.choice((0.01, 0.1, 0.5)))
        primaries = [self._cluster.add(engine.add_server(f"r{number}")) for number in (1, 2, 3)]
        for number, primary in enumerate(primaries, 4):
            self._cluster.add(engine.add_server(f"r{number}"), replica_of=primary, lag_s=self._lag())
        self._cluster.share_out()
        self.servers = [node.server for node in self._cluster.nodes]
        self.confirmed = chance.random() < 0.3
        self._moving: dict[int, tuple[RedisServer, RedisServer]] = {}
        """By slot: from where to where."""

    def url(self, user: str) -> str:
        confirmed = "?wait_replicas=1" if self.confirmed else ""
        return f"redis+cluster://{user}r1:6379,r2:6379,r3:6379{confirmed}"

    def own_fault(self, seconds: float) -> None:
        chance = self._world.chance
        node = chance.choice([node for node in self._cluster.nodes if node.primary is None])
        if not node.server.running:
            return
        if chance.random() < 0.5:
            self._depose(node.server, seconds)
        else:
            self._move(node, seconds)

    def _take_over(self, old: RedisServer, by_order: bool) -> None:
        if not self._moving:
            super()._take_over(old, by_order)

    def _replace(self, old: RedisServer, new: RedisServer) -> None:
        assert old.cluster is not None
        assert new.cluster is not None
        self._cluster.fail_over(old.cluster, new.cluster)

    # Slots that move

    def _move(self, source: ClusterNode, seconds: float) -> None:
        """Of the slots that are in use, some: keys one after the other, and then who has the slot."""
        chance, timeline = self._world.chance, self._world.timeline
        keys = [key for _, key in source.server.keyspace.entries]
        others = [node for node in self._cluster.nodes if node.primary is None and node is not source]
        if not keys or not others:
            return
        slot, target = slot_of(chance.choice(keys)), chance.choice(others)
        if slot in self._moving or source.cluster._owners[slot] is not source or not target.server.running:
            return
        self._world.fault("slot moves")
        self._world.trace(source.place, "gives slot {} to {}", slot, target.place)
        self._moving[slot] = source.server, target.server
        self._engine.note(source.server)
        self._engine.goes_on(target.server)
        self._cluster.begin_move(slot, target)
        for key in keys:
            if slot_of(key) == slot:
                timeline.at(timeline.now + chance.random() * seconds, self._move_key, key)
        timeline.at(timeline.now + seconds, self._end_move, slot)

    def _move_key(self, key: bytes) -> None:
        if ends := self._moving.get(slot_of(key)):
            self._engine.goes_on_elsewhere(key, *ends)
            self._cluster.move_key(key)

    def _end_move(self, slot: int) -> None:
        if slot in self._moving:
            for key in [key for _, key in self._moving[slot][0].keyspace.entries if slot_of(key) == slot]:
                self._move_key(key)
            del self._moving[slot]
            self._cluster.finish_move(slot)

    def end_faults(self) -> None:
        super().end_faults()
        for slot in list(self._moving):
            self._end_move(slot)


def draw_deployment(engine: SimulatedRedis) -> Deployment:
    kind = engine.world.chance.choices((OneServer, BehindSentinels, InCluster), (60, 20, 20))[0]
    return kind(engine)
