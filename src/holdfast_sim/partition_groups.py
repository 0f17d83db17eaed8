"""A group of members of a partition, large and in motion: the decision that ships, on views of the past.

1. What decides is `recipes.partition_plan`, as members call it. A shard is a lock: taken if nobody holds it, released
   by its holder after a drain, or free a ttl after its holder was killed or stopped. Each taking has a larger token.
2. Time goes in ticks. In a tick some members look. What one sees may be a few ticks old; what it does then happens now.
3. After each event (members join, leave, are killed or stopped) the group must settle, with shares that differ by one
   at most within a weight, and with no more moves than the least possible and a twentieth.
4. A member works on a shard from its taking to the end of its drain, its loss or its death. Two at the same time are a
   violation. One that was stopped goes on when it wakes up; the fence refuses what it writes then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from holdfast.recipes.partition_plan import ShardPlan, make_plan

from .violation import Violation

MakePlan: TypeAlias = Callable[[Mapping[str, int], Mapping[int, str], int], ShardPlan]

TAKEN_AT_ONCE_COUNT = 64
TTL_TICKS_COUNT = 12
LOOK_TICKS_COUNT = 2
DRAIN_TICKS_COUNT = 3
VIEWS_COUNT = 3
MOST_TICKS_COUNT = 60
AFTER_TICKS_COUNT = 5


@dataclass(slots=True)
class GroupMember:
    """One member: what it holds, and until when it drains."""

    id: str
    weight: int
    own: dict[int, int] = field(default_factory=dict)
    """The shards that it holds, each with its token."""
    draining: dict[int, int] = field(default_factory=dict)
    seen: int = 0
    """The version of what it saw last: it never sees anything older."""
    free_before: frozenset[int] = frozenset()
    settled: bool = False
    leaving: bool = False


@dataclass(slots=True)
class GroupTotals:
    """What a run has done."""

    events: int = 0
    moves: int = 0
    least: int = 0
    collisions: int = 0
    refused: int = 0
    ticks: int = 0
    longest: int = 0
    """Ticks that the slowest event took to settle."""


class Group:
    """The members, the locks, and a clock of ticks."""

    def __init__(
        self, seed: int, members: int, shards: int, plan: MakePlan = make_plan, starts_early: bool = False
    ) -> None:
        self.chance = Random(seed)
        self.shards = shards
        self._size = members
        self.plan = plan
        self.starts_early = starts_early
        """A planted bug: a member works on a shard that its former owner has not released."""
        self.totals = GroupTotals()
        self.now = 0
        self.members: dict[str, GroupMember] = {}
        self.holders: dict[int, str] = {}
        self.working: dict[int, str] = {}
        self.tokens: dict[int, int] = dict.fromkeys(range(shards), 0)
        self.expiries: dict[str, int] = {}
        """Members that were killed or stopped, and when their claims end."""
        self.zombies: list[tuple[int, GroupMember]] = []
        """Those that were stopped, and when they wake up."""
        self._version = 0
        self._views: deque[tuple[int, ShardPlan]] = deque(maxlen=VIEWS_COUNT)
        for _ in range(members):
            self.join()
        self.settle(shards)

    # Events

    def join(self) -> GroupMember:
        """Somebody starts."""
        member = GroupMember(f"{self.chance.getrandbits(64):016x}", self.chance.choice((1, 1, 1, 1, 2, 3)))
        self.members[member.id] = member
        self._changed()
        return member

    def leave(self, member: GroupMember) -> None:
        """A clean end: it drains all that it owns, and is no member any more."""
        del self.members[member.id]
        member.leaving = True
        self.expiries[member.id] = 0
        for shard in member.own:
            member.draining.setdefault(shard, self.now + self.chance.randint(0, DRAIN_TICKS_COUNT))
        self.zombies.append((-1, member))
        self._changed()

    def strike(self, member: GroupMember, wakes: bool) -> None:
        """Killed, or stopped for longer than a ttl: it is a member, and holds its shards, until its claims end."""
        self.expiries[member.id] = self.now + self.chance.randint(TTL_TICKS_COUNT // 2, TTL_TICKS_COUNT)
        if wakes:
            self.zombies.append((self.expiries[member.id] + self.chance.randint(2, 6), member))

    def churn(self) -> None:
        """One event, or several at once: members come and go, or die; then the group settles.

        Not both at once: who comes is given a share that counts the dying as members, and what is moved for that is
        more than what would have to be moved in the end.
        """
        self.totals.events += 1
        few = len(self.members) <= self._size // 2 + 5
        kinds = ("kill", "stop") if not few and self.chance.random() < 0.4 else ("join", "join", "leave")
        for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
            kind = self.chance.choice(kinds)
            there = [each for each in self.members.values() if each.id not in self.expiries]
            if kind == "join" or len(there) < 3:
                self.join()
            elif kind == "leave":
                self.leave(self.chance.choice(there))
            else:
                self.strike(self.chance.choice(there), wakes=kind == "stop")
        self.settle(self.least_moves())

    # Time

    def least_moves(self) -> int:
        """How many shards must move, from how things are now: what those that stay are to gain."""
        weights = {each.id: each.weight for each in self.members.values() if each.id not in self.expiries}
        owners = {shard: owner for shard, owner in self.holders.items() if owner in weights}
        due = make_plan(weights, owners, self.shards)
        return sum(max(0, quota - due.owned.get(member, 0)) for member, quota in due.quotas.items())

    def settle(self, least: int) -> None:
        """Let time pass until nothing moves any more; and see that no more has moved than must."""
        before, began = self.totals.moves, self.now
        while not self._settled():
            if self.now - began > MOST_TICKS_COUNT:
                raise Violation("settles", f"not settled after {MOST_TICKS_COUNT} ticks: {self._unsettled()}")
            self.tick()
        self.totals.longest = max(self.totals.longest, self.now - began)
        for _ in range(AFTER_TICKS_COUNT):
            self.tick()  # and it stays as it is
        moved = self.totals.moves - before
        self.totals.least += least
        if moved > least * 1.05:
            raise Violation("few moves", f"{moved} shards were moved, and {least} had to be")
        self._check_shares()

    def tick(self) -> None:
        """Everybody who looks in this tick, looks; drains and claims end."""
        self.now += 1
        self.totals.ticks += 1
        self._end_claims()
        if not self._views or self._views[-1][0] != self._version:
            weights = {each.id: each.weight for each in self.members.values()}
            self._views.append((self._version, self.plan(weights, dict(self.holders), self.shards)))
        looking = [each for each in self.members.values() if each.id not in self.expiries]
        self.chance.shuffle(looking)
        for member in looking:
            self._end_drains(member)
            if not member.settled and self.chance.randrange(LOOK_TICKS_COUNT) == 0:
                self._look(member)

    def _look(self, member: GroupMember) -> None:
        version, plan = self.chance.choice([view for view in self._views if view[0] >= member.seen])
        if member.id not in plan.quotas:
            return  # a view from before it joined
        member.seen = version
        missing = min(plan.quotas[member.id] - len(member.own) + len(member.draining), TAKEN_AT_ONCE_COUNT)
        for shard in plan.wanted(member.id, missing, member.free_before) if missing > 0 else ():
            if self.starts_early or shard not in self.holders:
                self._take(member, shard)
            else:
                self.totals.collisions += 1
        kept = [shard for shard in member.own if shard not in member.draining]
        for shard in kept[plan.quotas[member.id] :]:
            member.draining[shard] = self.now + self.chance.randint(0, DRAIN_TICKS_COUNT)
            if self.starts_early:  # it is shown as free before it has been drained
                del self.holders[shard]
                self._changed()
        member.settled = plan.settled and version == self._version
        member.free_before = frozenset(plan.free)

    def _take(self, member: GroupMember, shard: int) -> None:
        if self.working.get(shard, member.id) != member.id:
            raise Violation("one owner", f"{member.id} works on shard {shard}, and so does {self.working[shard]}")
        self.holders[shard] = self.working[shard] = member.id
        self.tokens[shard] += 1
        member.own[shard] = self.tokens[shard]
        self.totals.moves += 1
        self._changed()

    def _end_drains(self, member: GroupMember) -> None:
        for shard in [shard for shard, end in member.draining.items() if end <= self.now]:
            del member.draining[shard]
            self._release(member, shard)

    def _release(self, member: GroupMember, shard: int) -> None:
        member.own.pop(shard, None)
        if self.working.get(shard) == member.id:
            del self.working[shard]
        if self.holders.get(shard) == member.id:
            del self.holders[shard]
            self._changed()

    def _end_claims(self) -> None:
        for name in [name for name, end in self.expiries.items() if 0 < end <= self.now]:
            member = self.members.pop(name, None)
            del self.expiries[name]
            for shard in [shard for shard, owner in self.holders.items() if owner == name]:
                del self.holders[shard]
                self.working.pop(shard, None)  # dead; or stopped, and told that it has lost it when it wakes up
            if member is not None:
                self._changed()
        for wakes, member in list(self.zombies):
            if wakes < 0:
                self._end_drains(member)
            if wakes < 0 and not member.own:
                self.expiries.pop(member.id, None)
                self.zombies.remove((wakes, member))
            elif 0 <= wakes <= self.now:
                self._wake(member)
                self.zombies.remove((wakes, member))

    def _wake(self, member: GroupMember) -> None:
        """It goes on where it was stopped, for a moment: each write has the token of its shard."""
        for shard, token in member.own.items():
            if token >= self.tokens[shard] and self.holders.get(shard) != member.id and shard in self.holders:
                raise Violation("fence", f"a stale write to shard {shard} with token {token} was accepted")
            self.totals.refused += token < self.tokens[shard]

    # What must hold

    def _changed(self) -> None:
        self._version += 1
        for member in self.members.values():
            member.settled = False

    def _settled(self) -> bool:
        there = self._views and self._views[-1][0] == self._version and self._views[-1][1].settled
        return bool(there) and not self.expiries and not self.zombies

    def _unsettled(self) -> str:
        return f"{self.shards - len(self.holders)} shards are free, {len(self.expiries)} members are going"

    def _check_shares(self) -> None:
        if len(self.holders) != self.shards or len(self.working) != self.shards:
            raise Violation("all owned", f"{self.shards - len(self.holders)} shards are free although all is settled")
        by_weight: dict[int, list[int]] = {}
        for member in self.members.values():
            by_weight.setdefault(member.weight, []).append(len(member.own))
        for weight, counts in by_weight.items():
            if max(counts) - min(counts) > 1:
                raise Violation(
                    "even shares", f"members of weight {weight} own from {min(counts)} to {max(counts)} shards"
                )


def run_group(
    seed: int,
    members: int,
    shards: int,
    events: int,
    plan: MakePlan = make_plan,
    starts_early: bool = False,
) -> GroupTotals:
    """A group that starts, and goes through so many events; raises `Violation`."""
    group = Group(seed, members, shards, plan, starts_early)
    for _ in range(events):
        group.churn()
    return group.totals
