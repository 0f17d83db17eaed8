"""Large groups of members with churn: even shares, few moves, one owner; and planted bugs are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b

import pytest

from holdfast.recipes.partition_plan import ShardPlan, make_plan
from holdfast_sim.partition_groups import run_group
from holdfast_sim.violation import Violation
from tests.unit.effort import seeds


@pytest.mark.parametrize(("members", "shards"), [(3, 7), (20, 300), (50, 1024), (60, 40)])
def test_groups_settle_with_few_moves(members: int, shards: int) -> None:
    for seed in seeds(6):
        totals = run_group(seed, members, shards, events=15)
        assert totals.moves <= 1.05 * totals.least


def test_a_thousand_members_and_a_hundred_thousand_shards() -> None:
    totals = run_group(1, 1000, 100_000, events=2)
    assert totals.moves >= 100_000


def by_lot(weights: Mapping[str, int], owners: Mapping[int, str], shards: int) -> ShardPlan:
    """Planted: each member is given what a hash says, which is not even."""
    counts = dict.fromkeys(weights, 0)
    for shard in range(shards):
        best = max(weights, key=lambda member: blake2b(f"{member}/{shard}".encode(), digest_size=8).digest())
        counts[best] += 1
    plan = make_plan(weights, owners, shards)
    settled = not plan.free and all(plan.owned.get(member, 0) == count for member, count in counts.items())
    return replace(plan, quotas=counts, settled=settled)


def by_id(weights: Mapping[str, int], owners: Mapping[int, str], shards: int) -> ShardPlan:
    """Planted: who has an extra shard does not keep it; the first by id are given one."""
    plan, due = make_plan(weights, owners, shards), make_plan(weights, {}, shards).quotas
    return replace(plan, quotas=due, settled=not plan.free and plan.owned == due)


@pytest.mark.parametrize(("plan", "found"), [(by_lot, "even shares"), (by_id, "few moves")])
def test_a_wrong_plan_is_found(plan: object, found: str) -> None:
    broken = set()
    for seed in range(10):
        try:
            run_group(seed, 12, 101, events=10, plan=plan)  # type: ignore[arg-type]
        except Violation as violation:
            broken.add(violation.invariant)
    assert found in broken


def test_who_starts_before_the_release_is_found() -> None:
    with pytest.raises(Violation, match="one owner"):
        run_group(1, 12, 101, events=10, starts_early=True)
