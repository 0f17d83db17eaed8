"""Who should own how many shards, and which of them move: decided by each member alone, from what all of them see.

1. A quota is the member's share by weight, rounded down or up. So members of one weight differ by one shard at most.
2. Who owns more than its share rounded down keeps the extra shard before anybody else is given one; then the larger
   fraction decides, then the id. So nobody has to give up a shard while another gains one for no reason: what moves is
   what must move, and no more.
3. A shard that is not free is never wanted: it is taken after its owner has let go of it, or after its ttl.
4. Free shards are dealt out to those below their quota in the order of their ids. Members that see the same never want
   the same shard. A shard that was left lying (its member is stopped, perhaps) may be taken by any other below
   its quota.
5. Quotas are for liveness alone. Members that see different things, or things of the past, move a shard once more than
   needed: two owners cannot come of it, because a shard is a lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass


def quotas(weights: Mapping[str, int], owned: Mapping[str, int], shards: int) -> dict[str, int]:
    """How many shards each member should own; all of them together are `shards`.

    >>> quotas({"a": 1, "b": 1, "c": 1}, {"b": 4, "c": 3}, 7)
    {'a': 2, 'b': 3, 'c': 2}
    """
    total = sum(weights.values())
    if total == 0:
        return {}
    down = {member: shards * weight // total for member, weight in weights.items()}
    extra = shards - sum(down.values())

    def rank(member: str) -> tuple[bool, int, str]:
        return (owned.get(member, 0) <= down[member], -(shards * weights[member] % total), member)

    fractions = [member for member, weight in weights.items() if shards * weight % total]
    for member in sorted(fractions, key=rank)[:extra]:
        down[member] += 1
    return down


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What follows from one look at the members and at the owners of the shards."""

    quotas: Mapping[str, int]
    owned: Mapping[str, int]
    free: tuple[int, ...]
    """Shards that nobody holds, in order."""
    starts: Mapping[str, int]
    """Where in `free` the shards begin that are a member's (rule 4)."""
    settled: bool
    """Every shard is owned by a member, and every member owns its quota: nothing has to move."""

    def wanted(self, member: str, count: int, left_lying: Collection[int] = ()) -> list[int]:
        """The free shards that a member should try to take, `count` at most, in the order to try them.

        `left_lying`: those that were free at an earlier look already.
        """
        start = min(self.starts[member], len(self.free))
        mine = list(self.free[start : start + count])
        if len(mine) < count and left_lying:
            others = [*self.free[start + len(mine) :], *self.free[:start]]
            mine += [shard for shard in others if shard in left_lying][: count - len(mine)]
        return mine


def make_plan(weights: Mapping[str, int], owners: Mapping[int, str], shards: int) -> ShardPlan:
    """From the members with their weights, and who owns each shard. An owner may be no member (any more)."""
    owned = Counter(owners.values())
    due = quotas(weights, owned, shards)
    free = tuple(shard for shard in range(shards) if shard not in owners) if len(owners) < shards else ()
    starts, start = {}, 0
    for member in sorted(due):
        starts[member] = start
        start += max(0, due[member] - owned[member])
    settled = not free and all(owned[member] == quota for member, quota in due.items())
    return ShardPlan(due, owned, free, starts, settled)
