"""One member of a partition: hooks, deadlines, the rate of moves, what ends it. In virtual time, and with threads."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast._core.flow import Flow, Sleep
from holdfast.errors import BackendUnavailable, Misconfigured, NotAcquired
from holdfast.model import State
from holdfast.recipes import partition_member
from holdfast.recipes.partition_member import Member
from holdfast.recipes.partition_spec import MAX_SHARDS_COUNT
from holdfast.testing import FakeClock


@asynccontextmanager
async def group(count: int) -> AsyncIterator[list[aio.Coordinator]]:
    url = f"memory://partitions-{os.urandom(4).hex()}"
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(aio.connect(url, ttl=30)) for _ in range(count)]


@asynccontextmanager
async def two() -> AsyncIterator[tuple[aio.Coordinator, aio.Coordinator]]:
    url = f"memory://partitions-{os.urandom(4).hex()}"
    async with aio.connect(url, ttl=30) as one, aio.connect(url, ttl=30) as other:
        yield one, other


def virtually(test: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        FakeClock().run(test())

    run.__name__ = test.__name__
    return run


async def until(look: Callable[[], object], within: float = 200.0) -> None:
    async with asyncio.timeout(within):
        while not look():  # noqa: ASYNC110  virtual time: it jumps
            await asyncio.sleep(0.01)


def eventually(look: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)


@virtually
async def test_hooks_of_one_shard_come_one_after_the_other() -> None:
    """A start that takes long is waited for before the end of the work is asked for."""
    events: list[tuple[str, int]] = []

    async def on_assigned(shard: int, lease: aio.Lease) -> None:
        events.append(("starting", shard))
        await asyncio.sleep(5)
        events.append(("started", shard))

    async def on_revoking(shard: int, deadline: float) -> None:
        events.append(("ending", shard))

    async with two() as (one, _):
        async with one.partitions("p", shards=1, on_assigned=on_assigned, on_revoking=on_revoking):
            await until(lambda: events)
        assert events == [("starting", 0), ("started", 0), ("ending", 0)]


@virtually
async def test_a_shard_that_is_taken_again_is_started_after_the_end_of_its_loss() -> None:
    """Else whoever stops late stops what has been started since: a shard that is owned, and nobody works on it."""
    working: dict[int, int] = {}
    running: list[str] = []
    overlaps: list[str] = []

    async def on_assigned(shard: int, lease: aio.Lease) -> None:
        overlaps.extend(running)
        working[shard] = lease.token

    async def on_lost(shard: int, lease: aio.Lease) -> None:
        running.append("lost")
        await asyncio.sleep(100)
        running.remove("lost")
        del working[shard]

    async with two() as (one, other):
        async with one.partitions("p", shards=1, on_assigned=on_assigned, on_lost=on_lost) as member:
            await until(lambda: working)
            token = member[0].token
            assert await other.evict("p/shards/1/0", token)
            await until(lambda: running)
            await until(lambda: working and working[0] > token)
            assert member[0].token == working[0]
            assert overlaps == []


def test_with_threads_a_shard_that_is_taken_again_is_started_after_the_end_of_its_loss() -> None:
    """Many times: the keeper's hook and the loop race."""
    working: dict[int, int] = {}
    lost: list[int] = []

    def on_lost(shard: int, lease: holdfast.Lease) -> None:
        time.sleep(0.6)
        working.pop(shard)
        lost.append(shard)

    url = f"memory://partitions-{os.urandom(4).hex()}"
    with holdfast.connect(url) as one, holdfast.connect(url) as other:
        with one.partitions(
            "p",
            shards=4,
            ttl=3,
            on_assigned=lambda shard, lease: working.update({shard: lease.token}),
            on_lost=on_lost,
        ) as member:
            for losses in (0, 4, 8):
                eventually(lambda: len(lost) == losses)  # noqa: B023  called at once
                eventually(lambda: len(member) == 4 and working == {shard: member[shard].token for shard in member})
                for shard in member:
                    assert other.evict(f"p/shards/4/{shard}", working[shard])


def test_a_shard_is_not_taken_while_a_thread_is_late_to_end_the_work() -> None:
    """It was released at the deadline of the drain, and nobody else is left."""
    go_on, calls = threading.Event(), []
    url = f"memory://partitions-{os.urandom(4).hex()}"

    def on_revoking(shard: int, deadline: float) -> None:
        calls.append("revoking")
        go_on.wait(60)
        calls.append("revoked")

    def on_assigned(shard: int, lease: holdfast.Lease) -> None:
        calls.append("assigned")

    with holdfast.connect(url, ttl=3) as one, holdfast.connect(url, ttl=3) as other:
        options: dict[str, Any] = {"drain": 0.05, "on_assigned": on_assigned, "on_revoking": on_revoking}
        with one.partitions("p", shards=2, **options) as first:
            eventually(lambda: calls == ["assigned"] * 2)
            with other.partitions("p", shards=2) as second:
                eventually(lambda: len(second) == 1)
                [moved] = second
            assert not first.wait_for_change(known={1 - moved}, timeout=1) - {1 - moved}
            assert calls == ["assigned", "assigned", "revoking"]
            go_on.set()
            eventually(lambda: len(first) == 2)
            eventually(lambda: len(calls) == 5)
            assert calls[3:] == ["revoked", "assigned"]


def test_threads_that_start_shards_do_not_keep_others_from_being_told_to_end() -> None:
    """More starts hang than there are threads; what has not been started is given up without a word."""
    go_on, calls = threading.Event(), Counter[str]()
    url = f"memory://partitions-{os.urandom(4).hex()}"

    def on_assigned(shard: int, lease: holdfast.Lease) -> None:
        calls["assigned"] += 1
        if calls["assigned"] > 10:
            go_on.wait(60)

    with holdfast.connect(url, ttl=3) as one, holdfast.connect(url, ttl=3) as other:
        ended = lambda shard, deadline: calls.update(["revoking"])  # noqa: E731
        options: dict[str, Any] = {"drain": 3600, "on_assigned": on_assigned, "on_revoking": ended}
        with one.partitions("p", shards=100, **options) as first:
            eventually(lambda: len(first) == 100 and calls["assigned"] == 74)
            with other.partitions("p", shards=100) as second:
                try:
                    eventually(lambda: len(second) >= 26)  # those that have not been started
                    assert calls["revoking"] == 0
                finally:
                    go_on.set()
                eventually(lambda: len(second) == 50)
                assert calls["revoking"] == 24


@virtually
async def test_a_drain_ends_at_its_deadline() -> None:
    """A hook that hangs is cancelled, and the shard is released all the same; what is used is released, too."""
    ended: list[int] = []

    async def on_revoking(shard: int, deadline: float) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(shard)

    async with two() as (one, other):
        async with one.partitions("p", shards=2, drain=7, on_revoking=on_revoking) as first:
            await until(lambda: len(first) == 2)
            loop = asyncio.get_running_loop()
            with first.using(0), first.using(1):
                began = loop.time()
                async with other.partitions("p", shards=2) as second:
                    await until(lambda: len(second) == 1)
                    assert 7 <= loop.time() - began < 14
                    assert len(ended) == 1
                    assert len(first) == 1


@virtually
async def test_a_start_that_outlasts_the_drain_is_cancelled_and_not_ended() -> None:
    events: list[str] = []

    async def on_assigned(shard: int, lease: aio.Lease) -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    async with two() as (one, _):
        loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        revoking = lambda shard, deadline: events.append("revoking")  # noqa: E731
        async with one.partitions("p", shards=1, drain=7, on_assigned=on_assigned, on_revoking=revoking) as member:
            await until(lambda: len(member) == 1)
        assert loop.time() - began < 20
        assert events == ["cancelled"]


@virtually
async def test_a_shard_that_is_lost_while_it_is_started() -> None:
    """The start is cancelled, and there is nothing to be ended; it is taken again."""
    events: list[str] = []

    async def on_assigned(shard: int, lease: aio.Lease) -> None:
        events.append("starts")
        if len(events) == 1:
            await asyncio.sleep(3600)

    async with two() as (one, other):
        lost = lambda shard, lease: events.append("lost")  # noqa: E731
        async with one.partitions("p", shards=1, on_assigned=on_assigned, on_lost=lost) as member:
            await until(lambda: events)
            assert await other.evict("p/shards/1/0", member[0].token)
            await until(lambda: len(events) > 1)
            assert events == ["starts", "starts"]


def test_a_thread_that_starts_late_is_told_to_end_all_the_same() -> None:
    """The shard was released at the deadline; whoever has begun to work on it afterwards is told to stop."""
    go_on, told = threading.Event(), threading.Event()
    with holdfast.connect(f"memory://partitions-{os.urandom(4).hex()}") as locks:
        with locks.partitions(
            "p",
            shards=1,
            drain=0.05,
            on_assigned=lambda shard, lease: go_on.wait(60),
            on_revoking=lambda shard, deadline: told.set(),
        ) as member:
            member.wait_for_change()
        assert locks.survey() == []
        assert not told.is_set()
        go_on.set()
        assert told.wait(60)


@virtually
async def test_a_hook_that_raises_ends_the_drain() -> None:
    def on_revoking(shard: int, deadline: float) -> None:
        raise RuntimeError("planted")

    async with two() as (one, other):
        async with one.partitions("p", shards=2, drain=3600, on_revoking=on_revoking) as first:
            await until(lambda: len(first) == 2)
            async with other.partitions("p", shards=2) as second:
                await until(lambda: len(second) == 1, within=20)


@virtually
async def test_a_shard_that_cannot_be_started_is_given_back_and_tried_again() -> None:
    """Not at once: after a ttl. Meanwhile it is not owned here, and it has a new token each time."""
    tokens: list[int] = []
    times: list[float] = []

    def on_assigned(shard: int, lease: aio.Lease) -> None:
        tokens.append(lease.token)
        times.append(asyncio.get_running_loop().time())
        if len(tokens) < 3:
            raise RuntimeError("planted")

    async with two() as (one, _):
        async with one.partitions("p", shards=1, on_assigned=on_assigned) as member:
            await until(lambda: len(tokens) == 3)
            assert tokens == sorted(set(tokens))
            assert times[1] - times[0] >= 30
            await until(lambda: len(member) == 1)


@virtually
async def test_no_more_moves_than_allowed() -> None:
    """One shard in ten seconds: who joins is not given its share at once."""
    revoked: list[float] = []

    def on_revoking(shard: int, deadline: float) -> None:
        revoked.append(asyncio.get_running_loop().time())

    async with two() as (one, other):
        async with one.partitions("p", shards=8, moves="1/10s", on_revoking=on_revoking) as first:
            await until(lambda: len(first) == 8)
            async with other.partitions("p", shards=8) as second:
                await until(lambda: len(second) == 4)
                assert all(later - earlier >= 9.9 for earlier, later in pairwise(revoked))
                assert len(revoked) == 4
            assert revoked[-1] - revoked[0] >= 29


@virtually
async def test_what_is_evicted_is_taken_again_and_a_member_too() -> None:
    async with two() as (one, other):
        lost: list[int] = []
        async with one.partitions("p", shards=3, on_lost=lambda shard, lease: lost.append(shard)) as member:
            await until(lambda: len(member) == 3)
            token = member[1].token
            assert await other.evict("p/shards/3/1", token)
            await until(lambda: 1 in lost and 1 in member)
            assert member[1].token > token
            [view] = await other.survey("p/members/", exact=False)
            assert await other.evict(view.name, view.holders[0].token or 0)
            await until(lambda: not lost[1:] and len(member) == 3)
            await asyncio.sleep(60)
            assert len(await member.members()) == 1


@virtually
async def test_who_loses_a_shard_of_a_settled_group_takes_it_again_soon() -> None:
    """By the ids it would be the turn of another one, which is at rest and reads the shards once in a long while."""
    async with group(3) as locks:
        members = sorted((each.partitions("p", shards=4) for each in locks), key=lambda one: one._loop._member.id)
        async with members[2], members[1]:
            await until(lambda: [len(one) for one in members] == [0, 2, 2])
            async with members[0]:  # with the lowest id; the extra shard stays with one of the others
                await until(lambda: len(members[0]) == 1 and len(members[1]) + len(members[2]) == 3)
                await asyncio.sleep(100)  # all are at rest
                [owner] = [one for one in members if len(one) == 2]
                assert owner is not members[0]
                lost = next(iter(owner))
                assert await locks[0].evict(f"p/shards/4/{lost}", owner[lost].token)
                await until(lambda: lost not in owner)
                await until(lambda: lost in owner, within=10)
                assert [len(one) for one in members] == [1, 1, 2] or [len(one) for one in members] == [1, 2, 1]


@pytest.mark.parametrize(("poison", "most"), [(None, 1.5), (0, 3.0)])
def test_a_group_at_rest_reads_all_shards_about_as_often_as_one_member_looks(
    poison: int | None, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is not settled, because nobody can start one of the shards: only who waits for it looks on."""
    reads: Counter[str] = Counter()
    survey = partition_member._survey

    def counted(backend: Any, prefix: str, exact: bool = False) -> Any:
        reads[prefix] += 1
        return survey(backend, prefix, exact)

    def on_assigned(shard: int, lease: aio.Lease) -> None:
        if shard == poison:
            raise RuntimeError("planted")

    async def rest() -> float:
        async with group(40) as locks, AsyncExitStack() as stack:
            members = [each.partitions("p", shards=40, on_assigned=on_assigned) for each in locks]
            for one in members:
                await stack.enter_async_context(one)
            await asyncio.sleep(120)
            assert sum(map(len, members)) == 40 - (poison is not None)
            reads.clear()
            await asyncio.sleep(120)  # 4 ttls
            return reads["p/members/40"] / 40

    monkeypatch.setattr(partition_member, "_survey", counted)
    looks = FakeClock().run(rest())
    assert 0 < reads["p/shards/40/"] < most * looks


@virtually
async def test_run_serves_until_it_is_stopped_and_can_be_run_again() -> None:
    async with two() as (one, _):
        member = one.partitions("p", shards=3)
        for _again in range(2):
            stop = asyncio.Event()
            running = asyncio.ensure_future(member.run(stop))
            await until(lambda: len(member) == 3)
            stop.set()
            await running
            assert await member.wait_for_change({0, 1, 2}) == frozenset()
            assert await one.survey() == []


def test_who_leaves_drains_first_if_the_engine_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The membership is given up meanwhile: after a request that hangs, the leases may have ended."""
    withdraw = Member.withdraw
    states: list[State] = []

    def hangs(self: Member) -> Flow[None]:
        yield Sleep(100)
        yield from withdraw(self)

    async def leave() -> None:
        async with two() as (one, _):
            member: aio.Partitions
            drained = lambda shard, deadline: states.append(member[shard].state)  # noqa: E731
            member = one.partitions("p", shards=1, on_revoking=drained)
            async with member:
                await until(lambda: len(member) == 1)
                monkeypatch.setattr(Member, "withdraw", hangs)
                monkeypatch.setattr(one._core.backend, "renew", lambda *_: fails())

    def fails() -> Flow[None]:
        yield Sleep(1)
        raise BackendUnavailable("planted")

    FakeClock().run(leave())
    assert states == [State.HELD]


@virtually
async def test_a_cancelled_member_leaves_nothing_behind() -> None:
    """Wherever it is cancelled: while it joins, takes, waits or drains."""
    for turns in range(60):
        async with two() as (one, other):
            running = asyncio.ensure_future(one.partitions("p", shards=5).run())
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert await other.survey() == [], turns


@virtually
async def test_a_coordinator_that_is_closed_ends_its_member() -> None:
    async with two() as (one, other):
        member = one.partitions("p", shards=3)
        await member.__aenter__()
        await until(lambda: len(member) == 3)
        await one.close()
        await member.__aexit__(None, None, None)
        assert list(member) == []
        assert await other.survey() == []


@virtually
async def test_a_coordinator_may_be_closed_in_a_hook_and_during_a_drain() -> None:
    async with two() as (one, other):

        async def on_assigned(shard: int, lease: aio.Lease) -> None:
            await one.close()
            raise RuntimeError("planted")  # what was begun cannot be given back any more

        async with one.partitions("p", shards=1, on_assigned=on_assigned) as member:
            await until(lambda: member._loop.over.is_set())
        assert await other.survey() == []


@virtually
async def test_a_shard_whose_lease_the_user_releases_is_left_alone_for_a_while() -> None:
    """Else it would be taken and released on the spot, for ever."""
    tokens: list[int] = []

    async def on_assigned(shard: int, lease: aio.Lease) -> None:
        tokens.append(lease.token)
        await lease.release()

    async with two() as (one, _):
        async with one.partitions("p", shards=1, on_assigned=on_assigned):
            await asyncio.sleep(100)  # of ttls of 30
        assert 2 <= len(tokens) <= 4


@virtually
async def test_a_use_that_outlasts_its_member_does_not_hold_up_the_next_one() -> None:
    async with two() as (one, _):
        member = one.partitions("p", shards=1, drain=5)
        async with member:
            await until(lambda: len(member) == 1)
            use = member.using(0)
            use.__enter__()
        async with member:
            await until(lambda: len(member) == 1)
            use.__exit__(None, None, None)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 1


@virtually
async def test_a_member_that_finds_another_number_when_it_comes_back_is_told() -> None:
    """It was away for longer than its ttl; meanwhile the number has been changed."""
    async with two() as (one, other):
        member = one.partitions("p", shards=3)
        async with other.partitions("p", shards=5) as changed:
            await until(lambda: len(changed) == 5)
            with pytest.raises(Misconfigured, match="has 5 shards, and this member was given 3"):
                await member.run()
        running = asyncio.ensure_future(member.run())
        await until(lambda: len(member) == 3)
        running.cancel()
        await asyncio.wait((running,))


def test_wrong_input_is_refused_before_anything_is_sent() -> None:
    with holdfast.connect("memory://") as locks:

        async def coroutine(*_: object) -> None: ...

        wrong: list[dict[str, Any]] = [
            {"name": ""},
            {"name": "n" * 500},
            {"shards": 0},
            {"shards": True},
            {"shards": 2.0},
            {"shards": MAX_SHARDS_COUNT + 1},
            {"weight": 0},
            {"weight": 1001},
            {"weight": "1"},
            {"ttl": 0},
            {"ttl": float("nan")},
            {"ttl": 0.0001},
            {"drain": -1},
            {"moves": "fast"},
            {"moves": 5},
            {"on_assigned": coroutine},
            {"on_revoking": coroutine},
            {"on_lost": coroutine},
            {"on_lost": 7},
        ]
        for each in wrong:
            given = {"name": "p", "shards": 4, **each}
            with pytest.raises(Misconfigured):
                locks.partitions(given.pop("name"), **given)
        member = locks.partitions("p", shards=4)
        with pytest.raises(Misconfigured):
            member.run(asyncio.Event())  # type: ignore[arg-type]
        with pytest.raises(NotAcquired, match="does not own it"), member.using(1):
            pass
        with pytest.raises(KeyError):
            member[1]
        assert list(member) == [] == locks.survey()


def test_threads_share_and_leave() -> None:
    url = f"memory://partitions-{os.urandom(4).hex()}"
    events: list[tuple[str, int]] = []
    with holdfast.connect(url) as one, holdfast.connect(url) as other:
        first = one.partitions(
            "p",
            shards=6,
            ttl=5,
            on_assigned=lambda shard, lease: events.append(("assigned", shard)),
            on_revoking=lambda shard, deadline: events.append(("revoking", shard)),
        )
        with first:
            owned = first.wait_for_change()
            while len(owned) < 6:
                owned = first.wait_for_change(owned)
            stop = threading.Event()
            second = other.partitions("p", shards=6, ttl=5)
            thread = threading.Thread(target=second.run, args=(stop,))
            thread.start()
            while len(owned) > 3:
                owned = first.wait_for_change(owned, timeout=20)
            taken: frozenset[int] = frozenset()
            while len(taken) < 3:
                taken = second.wait_for_change(taken, timeout=20)
            assert owned | taken == set(range(6))
            stop.set()
            thread.join()
            while len(owned) < 6:
                owned = first.wait_for_change(owned, timeout=20)
        assert sorted(event for event in events if event[0] == "revoking") == [
            ("revoking", shard) for shard in sorted([*range(6), *taken])
        ]
        assert one.survey() == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_owns_nothing() -> None:
    with holdfast.connect(f"memory://partitions-{os.urandom(4).hex()}") as locks:
        with locks.partitions("p", shards=3, ttl=60) as member:
            owned: frozenset[int] = frozenset()
            while len(owned) < 3:
                owned = member.wait_for_change(owned)
            child = os.fork()
            if child == 0:
                os._exit(len(member))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert len(member) == 3
