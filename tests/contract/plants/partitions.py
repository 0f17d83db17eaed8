"""Bugs of partitions: who owns what, and when it moves."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import pytest

from holdfast.aio.member_loop import MemberLoop
from holdfast.recipes import partition_plan
from holdfast.recipes.partition_member import Member
from holdfast.recipes.partition_spec import Partition, PartitionSpec
from tests.contract.plants.plant import plant


@plant("partitions.equal_shares_and_few_moves")
def all_is_dealt_out_anew(patch: pytest.MonkeyPatch) -> None:
    real = Member.surplus

    def surplus(self: Member, now: float) -> list[int]:
        if found := real(self, now):
            found += [shard for shard in self.own if shard not in self.draining]
            self.draining.update(found)
        return found

    patch.setattr(Member, "surplus", surplus)


@plant("partitions.shares_follow_the_weights")
def weights_are_ignored(patch: pytest.MonkeyPatch) -> None:
    real = partition_plan.quotas

    def quotas(weights: Mapping[str, int], owned: Mapping[str, int], shards: int) -> dict[str, int]:
        return real(dict.fromkeys(weights, 1), owned, shards)

    patch.setattr(partition_plan, "quotas", quotas)


@plant("partitions.a_shard_is_drained_before_it_moves")
def nobody_waits_for_a_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemberLoop, "_drained", lambda self, shard, drain: True)


@plant("partitions.who_is_cut_off_is_succeeded")
def nobody_is_told_of_a_loss(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemberLoop, "_lost", lambda self, lease: None)


@plant("partitions.another_number_of_shards_is_refused")
def other_numbers_of_shards_are_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "counts", lambda self: set())


@plant("partitions.the_owner_of_a_key_is_seen_by_all")
def keys_are_hashed_in_another_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        PartitionSpec, "shard_of", lambda self, key: zlib.crc32(key.encode() if isinstance(key, str) else key)
    )
