"""Who should own how many shards: the decision alone, for any group."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Misconfigured
from holdfast.model import ClaimView, LockView
from holdfast.recipes.partition_plan import make_plan, quotas
from holdfast.recipes.partition_spec import read_partitions, shard_of

groups = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(1, 50), min_size=1, max_size=20)


@given(groups, st.integers(1, 500), st.randoms(use_true_random=False))
def test_quotas_are_fair_and_complete(weights: dict[str, int], shards: int, dice: random.Random) -> None:
    owned = {member: dice.randint(0, shards) for member in weights}
    due = quotas(weights, owned, shards)
    assert sum(due.values()) == shards
    total = sum(weights.values())
    for member, weight in weights.items():
        assert abs(due[member] - shards * weight / total) < 1
    for weight in set(weights.values()):
        same = [due[member] for member in weights if weights[member] == weight]
        assert max(same) - min(same) <= 1


@given(groups, st.integers(1, 300), st.randoms(use_true_random=False))
def test_no_other_quotas_would_move_less(weights: dict[str, int], shards: int, dice: random.Random) -> None:
    """Among all quotas that round each share up or down: what has to be given up is least."""
    owners = {shard: dice.choice(sorted(weights)) for shard in range(shards)}
    owned = Counter(owners.values())
    due = quotas(weights, owned, shards)
    given_up = sum(max(0, owned[member] - due[member]) for member in weights)
    total = sum(weights.values())
    down = {member: shards * weight // total for member, weight in weights.items()}
    extra = shards - sum(down.values())
    keeping = sum(1 for member in weights if owned[member] > down[member] and shards * weights[member] % total)
    least = sum(max(0, owned[member] - down[member]) for member in weights) - min(extra, keeping)
    assert given_up == least


@given(groups, st.integers(1, 200), st.randoms(use_true_random=False))
def test_members_that_see_the_same_never_want_the_same(
    weights: dict[str, int], shards: int, dice: random.Random
) -> None:
    owners = {shard: dice.choice([*weights, "gone"]) for shard in range(shards) if dice.random() < 0.7}
    plan = make_plan(weights, owners, shards)
    wanted: list[int] = []
    for member in weights:
        missing = plan.quotas[member] - plan.owned[member] if member in plan.owned else plan.quotas[member]
        mine = plan.wanted(member, max(0, missing))
        assert len(mine) <= max(0, missing)
        wanted += mine
    assert len(wanted) == len(set(wanted))
    assert not set(wanted) & set(owners)
    assert plan.settled == (
        len(owners) == shards and not any(plan.owned.get(member, 0) != quota for member, quota in plan.quotas.items())
    )


def test_a_shard_left_lying_is_taken_by_another() -> None:
    plan = make_plan({"a": 1, "b": 1}, {0: "a", 1: "b"}, 4)
    assert plan.free == (2, 3)
    assert plan.wanted("a", 1) == [2]
    assert plan.wanted("b", 1) == [3]
    nearly = make_plan({"a": 1, "b": 1}, {0: "a", 1: "b", 3: "gone"}, 4)
    assert nearly.wanted("b", 1) == []
    assert nearly.wanted("b", 1, left_lying={2}) == [2]


def test_the_hash_of_a_key_never_changes() -> None:
    """These numbers are a promise to users: data has been placed by them."""
    vectors = {"": 52, "a": 47, "orders/99999": 62, "näme": 18, "名前": 39}
    assert {key: shard_of(key, 64) for key in vectors} == vectors
    assert [shard_of("orders/99999", shards) for shards in (1, 7, 1024, 100_000)] == [0, 4, 254, 23390]
    assert shard_of(b"\xff", 64) == shard_of(b"\xff", 64)
    for wrong in (7, None, "\ud800"):
        with pytest.raises(Misconfigured):
            shard_of(wrong, 64)  # type: ignore[arg-type]


def claim(owner: str, mode: str, weight: int = 1, live: bool = True) -> ClaimView:
    return ClaimView(owner, 7, weight, "host", 1, 0.0, 1.0, mode=mode, live=live)


def test_partitions_are_read_from_a_survey() -> None:
    views = [
        LockView("a/members/8", 1 << 20, (claim("x-1", "member", 3), claim("y-1", "member")), ()),
        LockView("a/members/8/5/z", 1, (claim("z-1", "member"),), ()),
        LockView("a/shards/8/7", 1, (claim("x-2", "shard"),), ()),
        LockView("a/shards/8/6", 1, (claim("x-3", "shard", live=False),), ()),
        LockView("a/shards/8/5", 1, (claim("u-1", "lock"),), ()),
        LockView("b/c/shards/4/0", 1, (claim("w-a", "shard"),), ()),
        LockView("members/8", 1, (claim("q-1", "member"),), ()),
    ]
    first, second = read_partitions(views)
    assert [(each.id, each.weight) for each in first.members] == [("x", 3), ("y", 1), ("z", 5)]
    assert first.owner_ids(8) == {7: "x"}
    assert first.owner_ids(4) == {}
    assert (second.name, second.counts(), second.members) == ("b/c", {4}, ())
