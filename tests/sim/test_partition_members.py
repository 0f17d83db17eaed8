"""Members of a partition under all faults of the simulator; and planted bugs are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast._core.flow import Flow
from holdfast.recipes import partition_member
from holdfast.recipes.partition_member import Member
from holdfast.recipes.partition_plan import ShardPlan, make_plan
from holdfast.recipes.partition_spec import Partition
from holdfast_sim.partition_members import run_members
from tests.unit.effort import seeds

Plant = Callable[[pytest.MonkeyPatch], None]


def test_seeds_are_clean() -> None:
    found = {}
    for seed in seeds(20):
        outcome = run_members(seed)
        if outcome.invariant:
            found[seed] = f"{outcome.invariant}: {outcome.story}"
    assert found == {}


def other_numbers_are_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "counts", lambda self: set())


def one_look_is_enough(patch: pytest.MonkeyPatch) -> None:
    """What was missed in a look is never looked for again."""
    patch.setattr(Member, "_look_at_all", lambda self: None)

    def settled(*args: object) -> ShardPlan:
        plan = make_plan(*args)  # type: ignore[arg-type]
        return ShardPlan(plan.quotas, plan.owned, plan.free, plan.starts, True)

    patch.setattr(partition_member, "make_plan", settled)
    patch.setattr(partition_member, "ALL_LOOKS_COUNT", 1 << 40)


def what_is_lost_is_kept(patch: pytest.MonkeyPatch) -> None:
    def drop_lost(self: Member) -> Flow[None]:
        return
        yield

    patch.setattr(Member, "drop_lost", drop_lost)


def nothing_is_given_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Member, "surplus", lambda self, now: [])


@pytest.mark.parametrize(
    ("plant", "invariant"),
    [
        (other_numbers_are_not_looked_for, "one number of shards"),
        (one_look_is_enough, "equal shares"),
        (what_is_lost_is_kept, "equal shares"),
        (nothing_is_given_up, "equal shares"),
    ],
)
def test_a_planted_bug_is_found(plant: Plant, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(run_members(seed).invariant == invariant for seed in range(60))
