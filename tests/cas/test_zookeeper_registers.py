"""The promises of all registers, on nodes of ZooKeeper, through kazoo."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import holdfast.cas.aio
from holdfast import cas
from holdfast.errors import Misconfigured
from holdfast.fenced.zookeeper import ZooKeeperFence
from tests.cas.faces import Counter, Place, at_once, looping
from tests.cas.promises import *  # noqa: F403
from tests.zookeeper.ensemble import Ensemble

_numbers = itertools.count()


@pytest.fixture(scope="module")
def clients(zookeeper_ensemble: Ensemble) -> Iterator[list[Any]]:
    from kazoo.client import KazooClient

    found = [KazooClient(zookeeper_ensemble.hosts, timeout=30) for _ in range(3)]
    for client in found:
        client.start(30)
    yield found
    for client in found:
        client.stop()
        client.close()


@pytest.fixture(params=["threads", "asyncio"])
def place(request: pytest.FixtureRequest, clients: list[Any]) -> Iterator[Place]:
    path = f"/cas/stock{next(_numbers)}"
    turn = itertools.cycle(clients)
    with ExitStack() as stack:

        def counter(codec: Any = cas.INTEGER, **more: Any) -> Counter:
            if request.param == "threads":
                return Counter(cas.ZNode(next(turn), path, codec, **more), at_once)
            loop = stack.enter_context(looping())
            return Counter(holdfast.cas.aio.ZNode(next(turn), path, codec, **more), loop.wait)

        yield Place(counter, lambda token: ZooKeeperFence(clients[0]).claim(path, token))


def test_a_node_that_is_gone_is_missing(clients: list[Any]) -> None:
    path = f"/cas/gone{next(_numbers)}"
    counter = cas.ZNode(clients[0], path, cas.INTEGER)
    version = counter.create(5).version
    clients[0].delete(path)
    with pytest.raises(cas.VersionConflict):
        counter.swap(6, version)
    with pytest.raises(cas.Missing):
        counter.update(add_one)  # noqa: F405


@pytest.mark.parametrize("path", ["orders", "/", "/orders/", 7, "/orders/\ud800"], ids=ascii)
def test_what_is_no_path_and_no_client_is_refused(clients: list[Any], path: Any) -> None:
    with pytest.raises(Misconfigured):
        cas.ZNode(clients[0], path, cas.INTEGER)
    with pytest.raises(Misconfigured):
        cas.ZNode("127.0.0.1:2181", "/orders", cas.INTEGER)


def test_a_node_that_may_not_be_written_says_so(clients: list[Any]) -> None:
    """Also with a lease, where the write is one of two steps of a transaction."""
    from kazoo.exceptions import NoAuthError
    from kazoo.security import make_acl

    path = f"/cas/guarded{next(_numbers)}"
    clients[0].ensure_path("/cas")
    clients[0].create(path, b"5", acl=[make_acl("world", "anyone", read=True)])
    counter = cas.ZNode(clients[0], path, cas.INTEGER)
    for lease in (None, 4):
        with pytest.raises(NoAuthError):
            counter.update(add_one, lease=lease)  # noqa: F405
