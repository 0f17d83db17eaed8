"""TRAPS 14 to 23: how other locks on Redis fail, and that this one does not."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.redis.programs import VERBS, source
from holdfast.errors import Misconfigured
from tests.redis.faces import calls, run, until
from tests.redis.proxy import proxied
from tests.support.redis_server import RedisServer, running
from tests.support.redis_topologies import await_true, with_cluster


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    redis_server.raw("FLUSHALL")
    return redis_server


def nobody_at(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks:
        await_true(lambda: not locks.survey(), "nobody to hold or wait")


def test_14_cancelled_acquire_leaves_no_key(server: RedisServer) -> None:
    """Cancelled at every moment of the request's way, there and back."""

    async def main() -> None:
        with proxied(server.port) as proxy:
            async with holdfast.aio.connect(proxy.url) as locks:
                for turns in range(12):
                    proxy.hold_up()
                    task = asyncio.ensure_future(locks.lock("a").acquire())
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    task.cancel()
                    proxy.let_flow()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    assert not await locks.survey()

    run(main())


def test_14_cancelled_release_releases(server: RedisServer) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            for turns in range(1, 9):  # before the first it has not even begun
                lease = await locks.lock("a").acquire()
                task = asyncio.ensure_future(lease.release())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert not await locks.survey()

    run(main())


def test_15_a_lost_reply_to_the_take_is_not_mistaken_for_another_holder(server: RedisServer) -> None:
    with proxied(server.port) as proxy, holdfast.connect(proxy.url, request_timeout=0.3) as locks:
        assert locks.lock("warm").acquire().release()
        for name in map(str, range(5)):
            proxy.loss = 1.0  # carried out, and the reply lost
            threading.Timer(0.1, setattr, (proxy, "loss", 0.0)).start()
            lease = locks.lock(name, timeout=10).acquire()
            assert lease.release()
    nobody_at(server)


def test_16_a_task_can_not_release_what_another_task_holds(server: RedisServer) -> None:
    """Leases are apart: a shared lock object holds nothing."""

    async def main() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            lock = locks.lock("a")
            first = await lock.acquire()
            waiting = asyncio.ensure_future(lock.acquire(timeout=20))
            await until(lambda: locks.survey("a"), lambda views: views and views[0].waiters)
            assert not waiting.done()
            assert await first.release()
            second = await waiting
            assert not await first.release()  # again, and not its own any more
            [view] = await locks.survey("a")
            assert [holder.token for holder in view.holders] == [second.token]
            assert await second.release()

    run(main())


def test_17_no_ttl_deletes_or_revives_a_lock(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks:
        for ttl in (0, -1, float("nan"), 0.001):
            with pytest.raises(Misconfigured):
                locks.lock("a", ttl=ttl).acquire()
        old = locks.lock("a", ttl=0.2, renew=False).acquire()
        await_true(lambda: not locks.survey("a") or not locks.survey("a")[0].holders[0].live, "its end")
        with pytest.raises(holdfast.LeaseLost):
            old.renew()
        new = locks.lock("a").acquire()
        assert not old.release()  # nor does a late release delete the key of another
        [view] = locks.survey("a")
        assert [holder.token for holder in view.holders] == [new.token]


def test_18_the_end_of_a_dead_holder_wakes_its_waiter(server: RedisServer) -> None:
    """Nothing is sent when a ttl ends; the first in line looks then, not a full ttl of its own later."""
    with holdfast.connect(server.url) as dead, holdfast.connect(server.url) as locks:
        dead.lock("a", ttl=0.5, renew=False).acquire()
        began = time.monotonic()
        assert locks.lock("a", ttl=30, timeout=20).acquire().release()
        assert time.monotonic() - began < 5


def test_18_a_lost_push_costs_a_bounded_delay(server: RedisServer) -> None:
    """The subscription is cut just before the hand-over: the waiter looks, and nobody is stuck."""
    with holdfast.connect(server.url) as other, proxied(server.port) as proxy, holdfast.connect(proxy.url) as locks:
        for _ in range(3):
            held = other.lock("a").acquire()
            tokens: list[int] = []
            waiter = threading.Thread(target=_take_and_tell, args=(locks, tokens))
            waiter.start()
            await_true(lambda: other.survey("a")[0].waiters, "the waiter")
            proxy.cut()
            assert held.release()
            waiter.join(20)
            assert tokens > [held.token]


def _take_and_tell(locks: holdfast.Coordinator, tokens: list[int]) -> None:
    with locks.lock("a", timeout=20) as lease:
        tokens.append(lease.token)


@pytest.mark.parametrize("hurt", ["pause", "restart"])
def test_18_an_engine_that_stops_for_a_while_leaves_nobody_stuck(hurt: str) -> None:
    with running() as server, holdfast.connect(server.url, request_timeout=1) as locks:
        held = locks.lock("a", ttl=5).acquire()
        tokens: list[int] = []
        waiter = threading.Thread(target=_take_and_tell, args=(locks, tokens))
        waiter.start()
        await_true(lambda: locks.survey("a")[0].waiters, "the waiter")
        if hurt == "pause":
            server.pause()
            threading.Timer(0.5, server.resume).start()
        else:
            server.stop()
            server.start()
        held.release()
        waiter.join(30)
        assert tokens > [held.token]


def test_19_a_dead_head_of_the_line_blocks_nobody(server: RedisServer) -> None:
    """Who waits first dies; who waits second is served at once, because nobody listens for the first."""
    with holdfast.connect(server.url) as locks:
        held = locks.lock("a").acquire()

        async def die_waiting() -> None:
            locks_of_the_dead = await holdfast.aio.connect(server.url)
            waiting = asyncio.ensure_future(locks_of_the_dead.lock("a").acquire())
            wire: Any = locks_of_the_dead._wire
            await until(lambda: locks_of_the_dead.survey("a"), lambda _: wire._client._waiters.by_owner)
            await wire.close()  # its sockets are gone, as those of a dead process are
            waiting.cancel()
            await asyncio.wait([waiting])

        run(die_waiting())
        assert len(locks.survey("a")[0].waiters) == 1
        tokens: list[int] = []
        waiter = threading.Thread(target=_take_and_tell, args=(locks, tokens))
        waiter.start()
        await_true(lambda: len(locks.survey("a")[0].waiters) == 2, "the second waiter")
        began = time.monotonic()
        assert held.release()
        waiter.join(20)
        assert tokens
        assert time.monotonic() - began < 2, "the dead one was waited for"


def test_19_no_clock_of_a_client_is_looked_at() -> None:
    assert all("redis.call('TIME')" in source(verb) for verb in VERBS)


def test_20_each_reader_has_a_ttl_of_its_own(server: RedisServer) -> None:
    with holdfast.connect(server.url) as dead, holdfast.connect(server.url) as locks:
        dead.rwlock("a", ttl=0.5, renew=False).read().acquire()
        living = locks.rwlock("a", ttl=0.9).read().acquire()
        await_true(lambda: len(locks.survey("a")[0].holders) == 1, "the dead reader to go")
        living.check()
        assert living.release()
        assert locks.rwlock("a").write().try_acquire()


def test_20_all_of_a_name_is_in_one_slot() -> None:
    with with_cluster() as nodes:
        with holdfast.connect(f"redis+cluster://127.0.0.1:{nodes[0].port}") as locks:
            for name in ("a", "}", "{}x", "{a}b", "a{b}c}"):
                assert locks.limiter(name, "9/s").try_acquire()
                with locks.rwlock(name).read(), locks.rwlock(name).read():
                    assert locks.rwlock(name).write().try_acquire() is None


def test_21_waiting_for_replicas_is_asked_on_the_connection_of_the_write() -> None:
    """See `tests/redis/test_durability.py`; here: on a server without replicas nothing is ever granted."""
    with running() as server, holdfast.connect(f"{server.url}?wait_replicas=1&wait_timeout=0.1") as locks:
        with pytest.raises(holdfast.BackendUnavailable):
            locks.lock("a", timeout=0.5).acquire()
        nobody_at(server)


def test_22_tokens_keep_all_their_digits(server: RedisServer) -> None:
    """Above 10^14 Lua's own formatting would round them: here they are microseconds since 1970."""
    with holdfast.connect(server.url) as locks:
        tokens = []
        for _ in range(50):
            with locks.semaphore("a", permits=2).acquire() as one, locks.semaphore("a", permits=2).acquire() as two:
                tokens += [one.token, two.token]
                [view] = locks.survey("a")
                assert [holder.token for holder in view.holders] == [one.token, two.token]
        assert tokens == sorted(set(tokens))
        assert all(10**15 < token < 2**53 for token in tokens)
        assert any(token % 10 for token in tokens)


def test_23_a_server_that_may_forget_does_not_promise_durability() -> None:
    with running(maxmemory="100mb", maxmemory_policy="allkeys-lru", appendonly="yes") as server:
        with pytest.raises(Misconfigured, match="maxmemory-policy"):
            holdfast.connect(server.url, require={"durable"})
    with running(appendonly="yes", appendfsync="everysec") as server:
        with pytest.raises(Misconfigured, match="appendfsync"):
            holdfast.connect(server.url, require={"durable"})


def test_6_and_7_tokens_grow_over_a_flush_and_nothing_stays_for_ever(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks:
        first = locks.lock("a").acquire()
        assert first.release()
        server.raw("FLUSHALL")
        second = locks.lock("a").acquire()
        assert second.token > first.token
        assert second.release()
        assert locks.limiter("a", "1/s").try_acquire()
        lasting = [key for key in server.client().keys("*") if server.client().pttl(key) < 0]
        assert lasting in ([], [b"holdfast/cluster"])


def test_18_a_waiter_keeps_its_place_when_its_subscription_breaks(server: RedisServer) -> None:
    """It subscribes anew, and is served before who came later."""
    with holdfast.connect(server.url) as other, proxied(server.port) as proxy, holdfast.connect(proxy.url) as locks:
        held = other.lock("a").acquire()
        tokens: list[int] = []
        waiter = threading.Thread(target=_take_and_tell, args=(locks, tokens))
        waiter.start()
        await_true(lambda: other.survey("a")[0].waiters, "the waiter")
        later: list[int] = []
        second = threading.Thread(target=_take_and_tell, args=(other, later))
        second.start()
        await_true(lambda: len(other.survey("a")[0].waiters) == 2, "the second waiter")
        first_in_line = other.survey("a")[0].waiters[0].owner
        listening = calls(server, "subscribe")
        proxy.cut()
        await_true(lambda: calls(server, "subscribe") > listening, "a new subscription")
        assert other.survey("a")[0].waiters[0].owner == first_in_line
        assert held.release()
        for thread in (waiter, second):
            thread.join(20)
        assert tokens < later
