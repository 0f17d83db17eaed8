"""What a fence cannot work with is refused when it is made; what cannot be pickled says what to do instead."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

import holdfast
import holdfast.aio
from holdfast.errors import Misconfigured
from holdfast.fenced import SQLiteFence
from holdfast.fenced.etcd import AsyncEtcdFence, EtcdFence, gateway
from holdfast.fenced.redis import AsyncRedisFence, RedisFence
from holdfast.fenced.zookeeper import ZooKeeperFence
from holdfast.sql import Fence, aio, lock_row

URL = "postgresql+psycopg://nobody@127.0.0.1:1/none"
WRONG: dict[str, Callable[[], object]] = {
    "Fence(engine)": lambda: Fence(sqlalchemy.create_engine(URL)),
    "Fence(engine class)": lambda: Fence(sqlalchemy.Engine),
    "Fence(url)": lambda: Fence(URL),
    "lock_row(engine)": lambda: lock_row(sqlalchemy.create_engine(URL), "orders", {"id": 7}),
    "aio.Fence(engine)": lambda: aio.Fence(sqlalchemy.create_engine(URL)),
    "aio.Fence(async engine)": lambda: aio.Fence(create_async_engine(URL)),
    "Fence(cursor)": lambda: Fence(sqlite3.Connection.cursor),
    "SQLiteFence(path)": lambda: SQLiteFence("shop.db"),  # type: ignore[arg-type]
    "SQLiteFence(engine)": lambda: SQLiteFence(sqlalchemy.create_engine("sqlite://")),  # type: ignore[arg-type]
    "RedisFence(url)": lambda: RedisFence("redis://127.0.0.1:1"),
    "RedisFence(class)": lambda: RedisFence(redis.Redis),
    "RedisFence(asyncio)": lambda: RedisFence(redis.asyncio.Redis()),
    "AsyncRedisFence(url)": lambda: AsyncRedisFence("redis://127.0.0.1:1"),
    "AsyncRedisFence(blocking)": lambda: AsyncRedisFence(redis.Redis()),
    "EtcdFence(url)": lambda: EtcdFence("http://127.0.0.1:1"),  # type: ignore[arg-type]
    "AsyncEtcdFence(url)": lambda: AsyncEtcdFence("http://127.0.0.1:1"),  # type: ignore[arg-type]
    "ZooKeeperFence(hosts)": lambda: ZooKeeperFence("127.0.0.1:2181"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_client_is_refused_at_once(wrong: str) -> None:
    with pytest.raises(Misconfigured, match=r"takes|connection"):
        WRONG[wrong]()


def refuses_pickling(thing: Any, advice: str) -> None:
    with pytest.raises(Misconfigured, match=advice):
        pickle.dumps(thing)


def test_leases_coordinators_and_locks_are_not_pickled(tmp_path: Path) -> None:
    with holdfast.connect(f"sqlite://{tmp_path}/locks.db") as locks:
        refuses_pickling(locks, "connect")
        refuses_pickling(locks.lock("a"), "connect")
        with locks.lock("a") as lease:
            refuses_pickling(lease, "token")
            assert pickle.loads(pickle.dumps(lease.sequencer())) == lease.sequencer()
        with locks.lock_all(["a", "b"]) as leases:
            refuses_pickling(leases, "token|connect")


def test_those_of_asyncio_are_not_pickled(tmp_path: Path) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(f"sqlite://{tmp_path}/locks.db") as locks:
            refuses_pickling(locks, "connect")
            async with locks.lock("a") as lease:
                refuses_pickling(lease, "token")

    asyncio.run(main())


def test_fences_are_not_pickled() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        for fence in (
            SQLiteFence(database),
            Fence(database),
            RedisFence(redis.Redis()),
            AsyncRedisFence(redis.asyncio.Redis()),
            EtcdFence(gateway("http://127.0.0.1:1")),
        ):
            refuses_pickling(fence, "make the fence there")
