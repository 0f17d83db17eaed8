"""A run with partitions: members that write to their shards, faults, and who has owned and written what.

1. Writes to a shard are in the order of its tokens: none came late (behind the fence; without it, some do).
2. At moments in which members were sure to own a shard, its tokens in the order of time never go back, and each token
   was one member's: so no two were owners in good faith.
3. In the end every shard is owned again.
"""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path

from ... import connect
from .ledger import EffectLedger
from .partition_process import NAME, SHARDS_COUNT
from .run import EffectsResult, Workload, read_told, wait_until

OWNED_AGAIN_S = 60.0


def judge_partitions(folder: Path, url: str, result: EffectsResult) -> None:
    """Compare what was written with what members were sure of; then let new members own everything."""
    moments: dict[str, list[tuple[float, int, str]]] = {}
    for member, told in read_told(folder, result):
        if "at" in told:
            moments.setdefault(told["key"], []).append((told["at"], int(told["result"]), member))
    with closing(EffectLedger(folder / "ledger.db")) as ledger:
        for shard, tokens in ledger.effects().items():
            result.violations += late_writes(shard, tokens)
    for shard, found in moments.items():
        result.violations += owners_at_once(shard, sorted(found))
    with connect(url) as one, connect(url) as other:
        with one.partitions(NAME, shards=SHARDS_COUNT) as first, other.partitions(NAME, shards=SHARDS_COUNT) as second:
            if not wait_until(lambda: {*first, *second} == set(range(SHARDS_COUNT)), OWNED_AGAIN_S):
                missing = sorted(set(range(SHARDS_COUNT)) - {*first, *second})
                result.violations.append(f"nobody owns the shards {missing}, {OWNED_AGAIN_S:g} s after the faults")


def late_writes(shard: str, tokens: list[int]) -> list[str]:
    """What came after a write with a larger token."""
    found, largest = list[str](), 0
    for token in tokens:
        if token < largest:
            found.append(f"a write to shard {shard} with token {token} came after one with token {largest}")
        largest = max(largest, token)
    return found


def owners_at_once(shard: str, moments: list[tuple[float, int, str]]) -> list[str]:
    """Members that were sure of a shard at moments at which another one must have owned it."""
    found: list[str] = []
    for (_, before, member), (at, token, other) in pairwise(moments):
        if token < before:
            found.append(f"{other} owned shard {shard} at {at:.3f} with token {token}, after {member} with {before}")
        elif token == before and member != other:
            found.append(f"{member} and {other} owned shard {shard} with the same token {token}")
    return found


PARTITIONS = Workload(
    "partitions",
    "holdfast.torture.effects.partition_process",
    ("sqlite", "redis", "redis+cluster", "postgresql", "mysql", "etcd", "etcds", "zookeeper"),
    judge_partitions,
    lambda folder, url: EffectLedger.create(folder / "ledger.db"),
    stops=0.05,
)
