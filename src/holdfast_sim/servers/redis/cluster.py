"""A cluster: which node has which slot, as each node sees it; slots that move; fail-over.

1. Each node answers by its own view, which may be behind: what changes is known at once to those it concerns, and to
   the others `gossip_s` later. Who is asked for a slot of another one says MOVED.
2. While a slot moves, its source answers for what it still has and says ASK for the rest; its target answers to who
   has said ASKING. A request for several keys, of which only some are there, is told TRYAGAIN.
3. While a primary has failed and nobody has taken over, the others refuse all keys: full coverage is required.
4. A message that is published reaches the sessions of all nodes, but only those of the same node are counted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.backends.redis.slots import SLOTS_COUNT, slot_of

from .protocol import ErrorReply, Reply
from .replication import fail_over, follow

if TYPE_CHECKING:
    from .server import RedisServer


class ClusterNode:
    """One node's part in a cluster."""

    def __init__(self, cluster: Cluster, server: RedisServer, primary: ClusterNode | None) -> None:
        self.cluster = cluster
        self.server = server
        self.primary = primary
        self.name = f"{server.host.chance.getrandbits(160):040x}"
        self.view: list[ClusterNode | None] = []
        self.migrating: dict[int, ClusterNode] = {}
        self.importing: dict[int, ClusterNode] = {}
        self.down = False
        """It sees a cluster that does not work: rule 3, or it is in a minority."""

    @property
    def place(self) -> str:
        host, port = self.server.address
        return f"{host}:{port}"

    def check(self, keys: list[bytes], asking: bool) -> None:
        """Raise what this node says to a request for keys that are not, or not all, its own."""
        if not keys:
            return
        slot = slot_of(keys[0])
        owner = self.view[slot]
        if owner is None:
            raise ErrorReply("CLUSTERDOWN Hash slot not served")
        if any(slot_of(key) != slot for key in keys):
            raise ErrorReply("CROSSSLOT Keys in request don't hash to the same slot")
        if self.down:
            raise ErrorReply("CLUSTERDOWN The cluster is down")
        here = sum(self.server.keyspace.get((0, key)) is not None for key in keys)
        if owner is self and slot in self.migrating and here < len(keys):
            if here:
                raise ErrorReply("TRYAGAIN Multiple keys request during rehashing of slot")
            raise ErrorReply(f"ASK {slot} {self.migrating[slot].place}")
        if owner is not self and slot in self.importing and asking:
            if len(keys) > 1 and here < len(keys):
                raise ErrorReply("TRYAGAIN Multiple keys request during rehashing of slot")
            return
        if owner is not self:
            raise ErrorReply(f"MOVED {slot} {owner.place}")

    def answer(self, question: bytes) -> Reply:
        if question == b"myid":
            return self.name.encode()
        return self._slots() if question == b"slots" else self._info()

    def _slots(self) -> Reply:
        found: list[Reply] = []
        for first, last, node in self._ranges():
            nodes = [node, *(each for each in self.cluster.nodes if each.primary is node and each.server.running)]
            found.append([first, last, *(each.described() for each in nodes)])
        return found

    def _ranges(self) -> list[tuple[int, int, ClusterNode]]:
        ranges: list[tuple[int, int, ClusterNode]] = []
        for slot, node in enumerate(self.view):
            if node is None:
                continue
            if ranges and ranges[-1][2] is node and ranges[-1][1] == slot - 1:
                ranges[-1] = (ranges[-1][0], slot, node)
            else:
                ranges.append((slot, slot, node))
        return ranges

    def described(self) -> Reply:
        host, port = self.server.address
        return [host.encode(), port, self.name.encode(), {}]

    def _info(self) -> Reply:
        assigned = sum(node is not None for node in self.view)
        fields = {
            "cluster_state": "fail" if self.down else "ok",
            "cluster_slots_assigned": assigned,
            "cluster_known_nodes": len(self.cluster.nodes),
            "cluster_size": len({node for node in self.view if node is not None}),
        }
        return "".join(f"{name}:{value}\r\n" for name, value in fields.items()).encode()

    def broadcast(self, channel: bytes, message: bytes) -> None:
        for node in self.cluster.nodes:
            if node is not self:
                self.cluster.tell_later(node, channel, message)


class Cluster:
    """All nodes, and who really has which slot."""

    def __init__(self, *, gossip_s: float = 0.1, bus_s: float = 0.001) -> None:
        self.nodes: list[ClusterNode] = []
        self._gossip_s = gossip_s
        self._bus_s = bus_s
        self._owners: list[ClusterNode | None] = [None] * SLOTS_COUNT

    def add(self, server: RedisServer, *, replica_of: ClusterNode | None = None, lag_s: float = 0.0) -> ClusterNode:
        node = server.cluster = ClusterNode(self, server, replica_of)
        self.nodes.append(node)
        node.view = list(self._owners)
        if replica_of is not None:
            follow(server, replica_of.server, lag_s)
        return node

    def share_out(self) -> None:
        """Give each primary its part of all slots."""
        primaries = [node for node in self.nodes if node.primary is None]
        self._owners = [primaries[slot * len(primaries) // SLOTS_COUNT] for slot in range(SLOTS_COUNT)]
        for node in self.nodes:
            node.view = self._owners

    def tell_later(self, node: ClusterNode, channel: bytes, message: bytes) -> None:
        def tell() -> None:
            if node.server.running:
                node.server.subscriptions.publish(channel, message)
                node.server.flush()

        node.server.host.after(self._bus_s, tell)

    def _own(self, slots: list[int], owner: ClusterNode, *first: ClusterNode) -> None:
        """Rule 1. `first` know at once."""
        owners = list(self._owners)
        for slot in slots:
            owners[slot] = owner
        self._owners = owners
        for node in self.nodes:
            if node in first:
                node.view = owners
            else:
                node.server.host.after(self._gossip_s, partial(self._hear, node))

    def _hear(self, node: ClusterNode) -> None:
        node.view = self._owners

    # Slots that move

    def begin_move(self, slot: int, target: ClusterNode) -> None:
        source = self._owners[slot]
        assert source is not None
        source.migrating[slot] = target
        target.importing[slot] = source

    def move_key(self, key: bytes) -> None:
        """MIGRATE: it is at its target from now on, and at its source no more."""
        slot = slot_of(key)
        source = self._owners[slot]
        assert source is not None
        target = source.migrating[slot].server
        entry = source.server.keyspace.get((0, key))
        if entry is not None:
            target.keyspace.put((0, key), entry.value, entry.expires_ms)
            target.replication.feed(target.keyspace.commit())
            source.server.keyspace.delete((0, key))
            source.server.replication.feed(source.server.keyspace.commit())

    def finish_move(self, slot: int) -> None:
        source = self._owners[slot]
        assert source is not None
        for place in [place for place in source.server.keyspace.entries if slot_of(place[1]) == slot]:
            self.move_key(place[1])
        target = source.migrating.pop(slot)
        del target.importing[slot]
        self._own([slot], target, source, target)

    # Fail-over

    def mark_failed(self, node: ClusterNode) -> None:
        """The others agree that it has failed: rule 3, until somebody takes over."""
        for each in self.nodes:
            each.down = each is not node

    def fail_over(self, old: ClusterNode, new: ClusterNode) -> None:
        """A replica takes over with what it has. The old primary, if it is there, hears of it with the others."""
        fail_over(old.server, new.server)
        new.primary, old.primary = None, new
        for each in self.nodes:
            each.down = False
            if each.primary is old:
                each.primary = new
        self._own([slot for slot, owner in enumerate(self._owners) if owner is old], new, new)
