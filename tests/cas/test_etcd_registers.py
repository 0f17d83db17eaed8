"""The promises of all registers, on etcd."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import holdfast.cas.aio
from holdfast import cas
from holdfast.errors import Misconfigured
from holdfast.fenced.etcd import EtcdFence, gateway
from tests.cas.faces import Counter, Place, at_once, looping
from tests.cas.promises import *  # noqa: F403
from tests.etcd.cluster import Cluster, b64

_numbers = itertools.count()


@pytest.fixture(params=["threads", "asyncio", "asyncio-gateway"])
def place(request: pytest.FixtureRequest, etcd_cluster: Cluster) -> Iterator[Place]:
    """Each register talks to another member."""
    key = f"stock/{next(_numbers)}"
    members = itertools.cycle(etcd_cluster.members)
    with ExitStack() as stack:

        def counter(codec: Any = cas.INTEGER, **more: Any) -> Counter:
            transact = gateway(f"http://{next(members).endpoint}", timeout=30)
            if request.param == "threads":
                return Counter(cas.EtcdKey(transact, key, codec, **more), at_once)

            async def awaited(txn: Any) -> Any:
                return await asyncio.to_thread(transact, txn)

            loop = stack.enter_context(looping())
            function: Any = awaited if request.param == "asyncio" else transact
            return Counter(holdfast.cas.aio.EtcdKey(function, key, codec, **more), loop.wait)

        fence = EtcdFence(gateway(f"http://{etcd_cluster.members[0].endpoint}", timeout=30))
        yield Place(counter, lambda token: fence.claim(key, token))


def test_the_etcd_lease_of_a_key_stays(etcd_cluster: Cluster) -> None:
    member, key = etcd_cluster.members[0], f"leased/{next(_numbers)}"
    lease = member.rpc("/v3/lease/grant", TTL=600)["ID"]
    member.rpc("/v3/kv/put", key=b64(key.encode()), value=b64(b"5"), lease=lease)
    counter = cas.EtcdKey(gateway(f"http://{member.endpoint}", timeout=30), key, cas.INTEGER)
    assert counter.update(add_one) == 6  # noqa: F405
    assert member.rpc("/v3/kv/range", key=b64(key.encode()))["kvs"][0]["lease"] == lease
    member.rpc("/v3/lease/revoke", ID=lease)
    with pytest.raises(cas.Missing):
        counter.update(add_one)  # noqa: F405


def test_a_key_that_was_deleted_and_made_again_is_another_version(etcd_cluster: Cluster) -> None:
    member, key = etcd_cluster.members[0], f"again/{next(_numbers)}"
    counter = cas.EtcdKey(gateway(f"http://{member.endpoint}", timeout=30), key, cas.INTEGER)
    version = counter.create(5).version
    member.rpc("/v3/kv/deleterange", key=b64(key.encode()))
    with pytest.raises(cas.VersionConflict):
        counter.swap(6, version)
    counter.create(5)
    with pytest.raises(cas.VersionConflict):
        counter.swap(6, version)


@pytest.mark.parametrize("wrong", ["http://127.0.0.1:2379", None])
def test_what_carries_out_no_transaction_is_refused(wrong: Any) -> None:
    sent = []

    async def later(txn: Any) -> Any:
        sent.append(txn)

    with pytest.raises(Misconfigured, match="aio"):
        cas.EtcdKey(later, "n", cas.INTEGER).create(1)  # type: ignore[arg-type]
    assert sent == []
    with pytest.raises(Misconfigured, match="not with a dict"):
        cas.EtcdKey(lambda txn: None, "n", cas.INTEGER).create(1)  # type: ignore[arg-type, return-value]
    with pytest.raises(Misconfigured):
        cas.EtcdKey(wrong, "n", cas.INTEGER)
    with pytest.raises(Misconfigured):
        cas.EtcdKey(lambda txn: txn, "", cas.INTEGER)
