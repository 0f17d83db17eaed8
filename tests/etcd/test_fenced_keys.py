"""The fence for etcd: claim before you read; a stale holder changes nothing. And the guard."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import rejects
from holdfast.fenced.etcd import AsyncEtcdFence, EtcdFence, gateway
from tests.etcd.cluster import Cluster, b64

_numbers = itertools.count()


@pytest.fixture
def key() -> str:
    return f"order:{next(_numbers)}"


@pytest.fixture
def fence(state_cluster: Cluster) -> EtcdFence:
    return EtcdFence(gateway(f"http://{state_cluster.members[0].endpoint}"))


def refuse(attempt: Callable[[], object], token: int, mark: int | None) -> None:
    with pytest.raises(FenceRejected) as refusal:
        attempt()
    assert (refusal.value.token, refusal.value.mark) == (token, mark)


def test_a_stale_holder_is_refused_and_changes_nothing(state_cluster: Cluster, fence: EtcdFence, key: str) -> None:
    with holdfast.connect(state_cluster.url) as locks:
        old = locks.lock("orders/7").acquire()
        order = fence.claim(key, old)
        order.put("100")
        assert locks.evict("orders/7", old.token)
        new = locks.lock("orders/7", timeout=5).acquire()
        newer = fence.claim(key, new)
        assert newer.get() == b"100"
        for attempt in (lambda: order.put("0"), order.delete, order.get, lambda: fence.claim(key, old)):
            refuse(attempt, old.token, new.token)
        assert newer.get() == b"100"
        assert fence.mark(key) == new.token
        assert rejects()["etcd", key] == 4
        assert newer.delete()
        assert not newer.delete()
        assert new.release()


def test_a_stale_write_between_the_new_holders_read_and_write_is_lost_by_nobody(fence: EtcdFence, key: str) -> None:
    """Which is why the claim comes before the read, and a check on write is not enough."""
    stale = fence.claim(key, 1)
    stale.put("10")
    fresh = fence.claim(key, 2)
    seen = int(fresh.get() or 0)
    refuse(lambda: stale.put("11"), 1, 2)
    fresh.put(str(seen + 1))
    assert fresh.get() == b"11"


def test_neighbours_are_told_apart_up_to_the_largest_token(fence: EtcdFence, key: str) -> None:
    big = 2**63 - 1
    fence.claim(key, 9)
    fence.claim(key, 10)  # as text, 9 comes after 10
    refuse(lambda: fence.claim(key, 9), 9, 10)
    older = fence.claim(key, big - 1)
    fence.claim(key, big)
    refuse(lambda: older.put("x"), big - 1, big)
    fence.claim(key, big)  # the same holder, once more


def test_without_a_mark_every_write_is_refused(state_cluster: Cluster, fence: EtcdFence, key: str) -> None:
    order = fence.claim(key, 5)
    state_cluster.members[0].rpc("/v3/kv/deleterange", key=b64(f"holdfast/fence/{key}".encode()))
    refuse(lambda: order.put("x"), 5, None)
    assert fence.mark(key) is None


def test_a_transaction_of_ones_own_runs_under_the_fence(fence: EtcdFence, key: str) -> None:
    order = fence.claim(key, 5)
    other = {"request_put": {"key": b64(f"{key}/audit".encode()), "value": b64(b"seen")}}
    missing = {"key": b64(f"{key}/audit".encode()), "target": "CREATE", "result": "GREATER", "create_revision": "0"}
    assert order.run([other], [missing]) is None  # a condition of one's own, not met: no refusal
    assert order.run([other]) is not None
    assert order.run([other], [missing]) is not None
    fence.claim(key, 6)
    refuse(lambda: order.run([other]), 5, 6)


@pytest.mark.parametrize("bad", ["", b"", None, 7])
def test_a_key_is_text_or_bytes(fence: EtcdFence, bad: Any) -> None:
    with pytest.raises(Misconfigured):
        fence.claim(bad, 1)


def test_the_same_for_asyncio(state_cluster: Cluster, fence: EtcdFence, key: str) -> None:
    transact = gateway(f"http://{state_cluster.members[0].endpoint}")

    async def play() -> None:
        apart = AsyncEtcdFence(lambda txn: asyncio.to_thread(transact, txn))
        async with holdfast.aio.connect(state_cluster.url) as locks, locks.lock("orders/8") as lease:
            order = await apart.claim(key, lease)
            await order.put("1")
            assert await order.get() == b"1"
            assert await apart.mark(key) == lease.token
            fence.claim(key, lease.token + 1)
            for attempt in (order.put("2"), order.get(), order.delete(), apart.claim(key, lease)):
                with pytest.raises(FenceRejected):
                    await attempt
        assert fence.claim(key, lease.token + 1).get() == b"1"

    asyncio.run(play())


def test_a_guard_holds_for_as_long_as_the_grant(state_cluster: Cluster, key: str) -> None:
    """Added to a transaction of the user's own; of a mutex, and of a permit that was granted out of turn."""
    transact = gateway(f"http://{state_cluster.members[0].endpoint}")
    put = {"request_put": {"key": b64(key.encode()), "value": b64(b"mine")}}

    def goes_through(lease: holdfast.Lease) -> bool:
        return bool(transact({"compare": [lease.guard()], "success": [put]}).get("succeeded"))

    with holdfast.connect(state_cluster.url) as locks:
        lease = locks.lock("guarded").acquire()
        guard = lease.guard()
        assert goes_through(lease)
        lease.renew()
        assert goes_through(lease)
        assert lease.release()
        assert not transact({"compare": [guard], "success": [put]}).get("succeeded")
        first = locks.semaphore("pool", permits=3, weight=2).acquire()
        assert goes_through(first)
        assert locks.evict("pool", first.token)
        assert not goes_through(first)
        first.release()
