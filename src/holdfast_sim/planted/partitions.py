"""Bugs of the members of a partition."""

from __future__ import annotations

from holdfast._core.flow import Flow
from holdfast.recipes import partition_member
from holdfast.recipes.partition_member import Member
from holdfast.recipes.partition_plan import ShardPlan, make_plan
from holdfast.recipes.partition_spec import Partition

from .registry import Patch, bug


@bug("one number of shards", "partitions")
def other_numbers_are_not_looked_for(patch: Patch) -> None:
    """A member with another number of shards is let in."""
    patch(Partition, "counts", lambda self: set())


@bug("equal shares", "partitions")
def one_look_is_enough(patch: Patch) -> None:
    """What was missed in a look is never looked for again."""
    patch(Member, "_look_at_all", lambda self: None)

    def settled(*args: object) -> ShardPlan:
        plan = make_plan(*args)  # type: ignore[arg-type]
        return ShardPlan(plan.quotas, plan.owned, plan.free, plan.starts, True)

    patch(partition_member, "make_plan", settled)
    patch(partition_member, "ALL_LOOKS_COUNT", 1 << 40)


@bug("equal shares", "partitions")
def what_is_lost_is_kept(patch: Patch) -> None:
    """A shard whose lease was lost still counts as owned."""

    def drop_lost(self: Member) -> Flow[None]:
        return
        yield

    patch(Member, "drop_lost", drop_lost)


@bug("equal shares", "partitions")
def nothing_is_given_up(patch: Patch) -> None:
    """Who has too much keeps it."""
    patch(Member, "surplus", lambda self, now: [])
