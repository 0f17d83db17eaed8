"""Names that are used once, and a lock that is taken again and again, leave no key: only revisions, until etcd is
compacted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast.aio
from holdfast.backends.etcd.rpc import Rpc, b64, end_of
from tests.etcd.cluster import Cluster, running

NAMES_COUNT, TAKES_COUNT, TASKS_COUNT = 2000, 500, 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


async def keys_left(locks: holdfast.aio.Coordinator) -> int:
    body = f'{{"key":"{b64("holdfast/")}","range_end":"{end_of("holdfast/")}","count_only":true}}'
    replies: Any = await locks._wire.call((Rpc("/v3/kv/range", body),), 5.0)
    return int(replies[0].get("count", 0))


async def use(locks: holdfast.aio.Coordinator, names: list[str]) -> None:
    for name in names:
        async with locks.lock(name, timeout=60):
            pass


@pytest.mark.parametrize("names", ["once", "hot", "contended"])
def test_no_key_stays_and_nothing_is_remembered(cluster: Cluster, names: str) -> None:
    used = {
        "once": [
            [f"orders/{number}" for number in range(first, NAMES_COUNT, TASKS_COUNT)] for first in range(TASKS_COUNT)
        ],
        "hot": [["hot"] * TAKES_COUNT],
        "contended": [[f"door/{number}" for number in range(20)]] * TASKS_COUNT,
    }[names]

    async def main() -> None:
        async with holdfast.aio.connect(cluster.url) as locks:
            await asyncio.gather(*(use(locks, each) for each in used))
            assert await keys_left(locks) == 0
            sessions = locks._core.backend.sessions  # type: ignore[attr-defined]
            assert [sessions.states, sessions.by_name, sessions.by_key, sessions.behind] == [{}] * 4
            async with locks.lock("one"):
                assert await keys_left(locks) == 1  # what is counted is there

    asyncio.run(main())
