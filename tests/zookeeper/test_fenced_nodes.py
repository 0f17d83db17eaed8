"""The fence for nodes: claim before you read; a stale holder changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import rejects
from holdfast.fenced.zookeeper import ZooKeeperFence
from tests.zookeeper.ensemble import Ensemble

BIG = 2**63 - 1


@pytest.fixture
def client(ensemble: Ensemble) -> Iterator[Any]:
    from kazoo.client import KazooClient

    found = KazooClient(ensemble.hosts, timeout=10)
    found.start(20)
    found.ensure_path("/fenced")
    for child in found.get_children("/fenced"):
        found.delete(f"/fenced/{child}", recursive=True)
    yield found
    found.stop()
    found.close()


def refuse(attempt: Callable[[], object], token: int, mark: int | None) -> None:
    with pytest.raises(FenceRejected) as refusal:
        attempt()
    assert (refusal.value.token, refusal.value.mark) == (token, mark)


def test_a_stale_holder_is_refused_and_changes_nothing(client: Any, ensemble: Ensemble) -> None:
    fence = ZooKeeperFence(client)
    with holdfast.connect(ensemble.url, namespace="fences") as locks:
        old = locks.lock("orders/7").acquire()
        order = fence.claim("/fenced/7", old)
        order.set(b"100")
        assert locks.evict("orders/7", old.token)
        new = locks.lock("orders/7", timeout=5).acquire()
        newer = fence.claim("/fenced/7", new)
        assert newer.get() == b"100"

        def own() -> object:
            transaction = client.transaction()
            transaction.create("/fenced/other", b"")
            return order.commit(transaction)

        before = rejects().get(("zookeeper", "/fenced/7"), 0)
        attempts = (lambda: order.set(b"0"), order.delete, order.get, own, lambda: fence.claim("/fenced/7", old))
        for attempt in attempts:
            refuse(attempt, old.token, new.token)
        assert rejects()["zookeeper", "/fenced/7"] - before == len(attempts)
        assert newer.get() == b"100"
        assert client.exists("/fenced/other") is None
        assert fence.mark("/fenced/7") == new.token
        assert new.release()


def test_a_stale_write_between_the_new_holders_read_and_write_is_lost_by_nobody(client: Any) -> None:
    """Which is why the claim comes before the read, and a check on write is not enough."""
    fence = ZooKeeperFence(client)
    stale = fence.claim("/fenced/balance", 1)
    stale.set(b"10")
    fresh = fence.claim("/fenced/balance", 2)
    seen = int(fresh.get() or b"0")
    refuse(lambda: stale.set(b"50"), 1, 2)
    fresh.set(b"%d" % (seen + 5))
    assert fresh.get() == b"15"


def test_the_same_token_may_claim_twice(client: Any) -> None:
    fence = ZooKeeperFence(client)
    one, other = fence.claim("/fenced/a", BIG), fence.claim("/fenced/a", BIG)
    one.set(b"1")
    other.set(b"2")
    assert one.get() == b"2"
    refuse(lambda: fence.claim("/fenced/a", BIG - 1), BIG - 1, BIG)
    assert one.delete() is True
    assert other.delete() is False
    assert one.get() is None


def test_an_error_of_the_users_own_transaction_comes_out(client: Any) -> None:
    from kazoo.exceptions import NoNodeError

    node = ZooKeeperFence(client).claim("/fenced/a", 5)
    transaction = client.transaction()
    transaction.set_data("/fenced/a", b"")
    with pytest.raises(NoNodeError):
        node.commit(transaction)


def test_without_its_mark_a_node_takes_no_writes(client: Any) -> None:
    node = ZooKeeperFence(client).claim("/fenced/a", 5)
    node.set(b"1")
    client.delete("/fenced/a.fence")
    refuse(lambda: node.set(b"2"), 5, None)
    refuse(node.get, 5, None)


def test_bad_input(client: Any) -> None:
    fence = ZooKeeperFence(client)
    for path in ("", "a", "/", "/a/", 7):
        with pytest.raises(Misconfigured):
            fence.claim(path, 1)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured):
        fence.claim("/fenced/a", 0)


def test_many_claims_at_once_the_highest_wins(client: Any) -> None:
    """In whatever order they come: the mark only rises, and one claim stands at the end."""
    fence = ZooKeeperFence(client)
    nodes: list[Any] = []

    def claim(token: int) -> None:
        try:
            nodes.append(fence.claim("/fenced/crowd", token))
        except FenceRejected:
            pass  # a higher one was quicker

    threads = [threading.Thread(target=claim, args=(token,)) for token in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fence.mark("/fenced/crowd") == 12
    passed = []
    for node in nodes:
        try:
            node.set(b"%d" % node.token)
            passed.append(node.token)
        except FenceRejected:
            pass  # as it must, but for one
    assert passed == [12]
