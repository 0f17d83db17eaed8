"""Partitions: every shard has one owner at a time, members have equal shares, and what moves is what must move."""

from __future__ import annotations

from collections.abc import Collection

from ...aio.lease import Lease
from ...aio.partitions import Partitions
from ...errors import Misconfigured, NotAcquired
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise

SHARDS_COUNT = 5


async def _owns(context: Context, member: Partitions, count: int) -> frozenset[int]:
    """Wait until a member owns so many shards."""
    await context.eventually(lambda: len(member) == count, f"{count} shards at {member!r}")
    return frozenset(member)


def _tokens(member: Partitions, shards: Collection[int]) -> dict[int, int]:
    return {shard: member[shard].token for shard in shards}


@promise()
async def equal_shares_and_few_moves(context: Context) -> None:
    """Who joins is given its share, and what it is not given stays where it is; who leaves is succeeded at once."""
    one, other = await context.connect(ttl=30), await context.connect(ttl=30)
    first, second = one.partitions("ingest", shards=SHARDS_COUNT), other.partitions("ingest", shards=SHARDS_COUNT)
    async with first:
        await _owns(context, first, SHARDS_COUNT)
        before = _tokens(first, range(SHARDS_COUNT))
        async with second:
            moved = await _owns(context, second, 2)
            kept = await _owns(context, first, 3)
            assert kept | moved == set(range(SHARDS_COUNT))
            assert _tokens(first, kept) == {shard: before[shard] for shard in kept}
            assert all(second[shard].token > before[shard] for shard in moved)
            assert [each.weight for each in await first.members()] == [1, 1]
            between = _tokens(second, moved)
        async with context.soon(10):
            await _owns(context, first, SHARDS_COUNT)
        after = _tokens(first, range(SHARDS_COUNT))
        assert all(after[shard] > between[shard] for shard in moved)
        assert {shard: after[shard] for shard in kept} == {shard: before[shard] for shard in kept}
    assert list(first) == []


@promise()
async def shares_follow_the_weights(context: Context) -> None:
    """A member of weight 3 owns three times as much as one of weight 1."""
    one, other = await context.connect(), await context.connect()
    light, heavy = one.partitions("ingest", shards=8), other.partitions("ingest", shards=8, weight=3)
    async with light:
        await _owns(context, light, 8)
        async with heavy:
            await _owns(context, heavy, 6)
            assert len(light) == 2


@promise()
async def a_shard_is_drained_before_it_moves(context: Context) -> None:
    """The old owner is told first; what it still uses stays with it, and nobody else has it meanwhile."""
    one, other = await context.connect(), await context.connect()
    revoking: list[int] = []
    first = one.partitions("ingest", shards=2, drain=300, on_revoking=lambda shard, deadline: revoking.append(shard))
    second = other.partitions("ingest", shards=2)
    async with first:
        await _owns(context, first, 2)
        with first.using(0) as zero, first.using(1) as last:
            async with second:
                await context.eventually(lambda: revoking, "to be told")
                [shard] = revoking
                lease = (zero, last)[shard]
                assert shard not in first
                try:
                    with first.using(shard):
                        raise AssertionError("begun to use a shard that is being given up")
                except NotAcquired:
                    pass
                [holder] = (await context.view(lease.name)).holders
                assert holder.token == lease.token
                assert first[shard].token == lease.token
                assert list(second) == []
        await _owns(context, first, 2)


@promise(needs={"ttl"})
async def who_is_cut_off_is_succeeded(context: Context) -> None:
    """It is told that its shards are lost before another one owns them; that one has larger tokens."""
    faults = FaultInjector()
    cut, locks = await context.connect(faults=faults), await context.connect()
    ttl = 30.0 if context.virtual else max(context.seconds(2.4), 3 * context.short)
    lost: dict[int, int] = {}
    told: dict[int, bool] = {}

    def on_lost(shard: int, lease: Lease) -> None:
        lost[shard] = lease.token

    def on_assigned(shard: int, lease: Lease) -> None:
        told[shard] = shard in lost

    first = cut.partitions("ingest", shards=SHARDS_COUNT, ttl=ttl, on_lost=on_lost)
    second = locks.partitions("ingest", shards=SHARDS_COUNT, ttl=ttl, on_assigned=on_assigned)
    async with first:
        await _owns(context, first, SHARDS_COUNT)
        tokens = _tokens(first, range(SHARDS_COUNT))
        faults.cut()
        async with second:
            await _owns(context, second, SHARDS_COUNT)
            await context.eventually(lambda: len(told) == SHARDS_COUNT, "all to be assigned")
            assert lost == tokens
            assert all(told.values())
            assert all(second[shard].token > token for shard, token in tokens.items())
            assert list(first) == []
        faults.heal()


@promise()
async def another_number_of_shards_is_refused(context: Context) -> None:
    """For as long as a member with the old number lives."""
    one, other = await context.connect(), await context.connect()
    async with one.partitions("ingest", shards=4):
        error = await context.raises(Misconfigured, _enter(other.partitions("ingest", shards=8)))
        assert "4 shards" in str(error)
        await context.raises(Misconfigured, _enter(one.partitions("ingest", shards=4)))
    async with other.partitions("ingest", shards=8) as after:
        await _owns(context, after, 8)


async def _enter(member: Partitions) -> None:
    async with member:
        raise AssertionError("entered")


@promise()
async def the_owner_of_a_key_is_seen_by_all(context: Context) -> None:
    """A key has the same shard everywhere, and its owner can be asked for by anybody."""
    one, other = await context.connect(), await context.connect()
    owning, asking = one.partitions("ingest", shards=64), other.partitions("ingest", shards=64)
    assert asking.shard("orders/99999") == asking.shard(b"orders/99999") == 62
    assert await asking.owner("orders/99999") is None
    async with owning:
        await _owns(context, owning, 64)
        owner = await asking.owner("orders/99999")
        assert owner is not None
        assert owner.token == owning[62].token
    assert await asking.owner("orders/99999") is None
