"""Members of a partition on a lossy network; clocks drift, processes stop and crash, and the engine forgets.

The flows that ship (`recipes.partition_member`) run in a world of a seed. Checked, besides all invariants of leases:

1. Once the faults are over, the members that live own every shard, each its share.
2. Members with different numbers of shards do not own shards at the same time.
3. A member that has left holds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from holdfast._core.flow import Flow, Sleep
from holdfast._core.lease import Hold
from holdfast.errors import BackendUnavailable, Misconfigured
from holdfast.recipes.partition_member import Member
from holdfast.recipes.partition_plan import quotas
from holdfast.recipes.partition_spec import PartitionSpec

from .faults import draw_profile, schedule_faults
from .network import LONGEST_DELAY_S
from .seed import Outcome, live
from .violation import Violation
from .world import Teller, World

if TYPE_CHECKING:
    from .process import Process

CALM_S = 60.0
"""So long after the last fault the members have settled."""

LETS_ANYBODY_IN = ("engine forgets its holds", "engine clock jumps forward", "holder evicted")


@dataclass(slots=True, weakref_slot=True)
class ShardListener:
    """Listens to the lease of a shard."""

    process: Process
    hold: Hold

    def _told(self, what: str) -> None:
        if what == "lost":
            self.process.world.count("lost")
            self.process.world.invariants.deadlines.lost(self.process, self.hold)


class SimMember:
    """One process as a member."""

    def __init__(self, process: Process, spec: PartitionSpec, group: MemberGroup) -> None:
        self.process = process
        self.world = process.world
        self.member = Member(process.core, spec)
        self.spec = spec
        self.refused = False
        self._group = group
        self._seen: set[str] = set()
        process.scripts += 1
        self.task = process.spawn(self._script(), "script member")

    def _script(self) -> Flow[None]:
        world, member = self.world, self.member
        actor = self.process.core.actor(1)
        yield Sleep(world.chance.random() ** 2 * 5.0)
        until = world.profile.faults_end_at + CALM_S + LONGEST_DELAY_S + 5.0
        try:
            while world.timeline.now < until:
                try:
                    pause = yield from member.step(actor)
                except BackendUnavailable:
                    pause = member.pause
                self._follow()
                for shard in member.surplus(self.process.clock()):
                    yield Sleep(world.chance.random() * self.spec.ttl / 4)
                    yield from self._give_up([shard])
                yield Sleep(pause)
        except Misconfigured:
            self.refused = True
        yield from member.withdraw()
        yield from self._give_up(list(member.own))
        world.invariants.ended(list(self.task.owners.values()), at_once=False)

    def _follow(self) -> None:
        for shard, hold in self.member.own.items():
            if hold.claim.owner not in self._seen and hold.alive:
                self._seen.add(hold.claim.owner)
                self.world.trace(self.process.name, "owns shard {} with token {}", shard, hold.token)
                self.world.invariants.acquired(self.process, hold)
                hold.listen(ShardListener(self.process, hold), keep=True)
                self._group.check_numbers()

    def _give_up(self, shards: list[int]) -> Flow[None]:
        for shard in shards:
            if (hold := self.member.own.get(shard)) is not None:
                self.world.invariants.letting_go(self.process, hold)
        yield from self.member.release(shards)

    def owned(self) -> list[int]:
        """What it may rely on at this moment."""
        now = self.process.clock()
        return [shard for shard, hold in self.member.own.items() if hold.over(now) is None]


class MemberGroup:
    """All members of a seed."""

    def __init__(self, world: World) -> None:
        chance = world.chance
        self._world = world
        shards, ttl = chance.choice((1, 3, 8, 16)), chance.choice((1.0, 2.0, 5.0))
        shared, mixed = chance.random() < 0.7, chance.random() < 0.25
        self.members = []
        for process in world.processes:
            count = chance.choice((shards, shards + 1)) if mixed else shards
            spec = PartitionSpec("p", count, chance.choice((1, 1, 2)), ttl, ttl, None, shared)
            self.members.append(SimMember(process, spec, self))
        world.timeline.at(world.profile.faults_end_at + CALM_S + LONGEST_DELAY_S, self.check_shares)

    def check_numbers(self) -> None:
        """Rule 2. An engine that forgets, and an operator who evicts, let anybody in: then nothing can be said."""
        if not self._world.faults.keys().isdisjoint(LETS_ANYBODY_IN):
            return
        numbers = {each.spec.shards for each in self.members if not each.process.crashed and each.owned()}
        if len(numbers) > 1:
            raise Violation("one number of shards", f"shards of partitions of {sorted(numbers)} shards are owned")

    def check_shares(self) -> None:
        """Rule 1."""
        there = [each for each in self.members if not each.process.crashed and not each.refused]
        if len({each.spec.shards for each in there}) > 1 or not there:
            return  # some are about to be refused
        owned = {each.member.id: len(each.owned()) for each in there}
        shards = there[0].spec.shards
        if quotas({each.member.id: each.spec.weight for each in there}, owned, shards) != owned:
            raise Violation("equal shares", f"{owned} of {shards} shards, long after the last fault")
        if {shard for each in there for shard in each.owned()} != set(range(shards)):
            raise Violation("equal shares", "a shard is owned twice, and another by nobody")


def run_members(seed: int, tell: Teller | None = None) -> Outcome:
    """Run a seed."""
    chance = Random(seed)
    world = World(chance, draw_profile(chance), chance.randint(2, 5), tell)
    MemberGroup(world)
    schedule_faults(world)
    return live(seed, world)
