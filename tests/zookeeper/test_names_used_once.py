"""A name that is used once leaves nothing behind: its container goes with the last claim, and not when the server
comes round to it. One that is used again keeps its container."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import holdfast
import holdfast.aio
from holdfast.backends.zookeeper.ops import Delete, List
from holdfast.backends.zookeeper.requests import Batch, child_nodes
from tests.zookeeper.ensemble import Ensemble

NAMES_COUNT = 3000


def children(locks: holdfast.Coordinator, namespace: str) -> list[str]:
    answers: Any = locks._wire.call(Batch((List(f"/{namespace}"),)), 5.0)
    return [step for step in child_nodes(answers[0]) if not step.startswith("%")]


def test_thousands_of_names_leave_nothing(ensemble: Ensemble) -> None:
    async def use_all() -> None:
        async with holdfast.aio.connect(ensemble.url, namespace="once") as locks:

            async def use(first: int) -> None:
                for number in range(first, NAMES_COUNT, 30):
                    async with locks.lock(f"orders/{number}"):
                        pass

            await asyncio.gather(*map(use, range(30)))

    asyncio.run(use_all())
    with holdfast.connect(ensemble.url, namespace="once") as locks:
        assert children(locks, "once") == []


def test_a_name_that_is_used_again_keeps_its_container_and_tokens_grow(ensemble: Ensemble) -> None:
    with holdfast.connect(ensemble.url, namespace="again") as locks:
        tokens = []
        for expected in ([], ["kept"], ["kept"]):
            with locks.lock("kept") as lease:
                assert children(locks, "again") == ["kept"]
                tokens.append(lease.token)
            assert children(locks, "again") == expected
        assert tokens == sorted(set(tokens))


def test_who_waits_is_let_in_and_the_container_stays(ensemble: Ensemble) -> None:
    with (
        holdfast.connect(ensemble.url, namespace="wanted") as one,
        holdfast.connect(one.url, namespace="wanted") as two,
    ):
        first = one.lock("door").acquire()
        granted: list[holdfast.Lease] = []
        thread = threading.Thread(target=lambda: granted.append(two.lock("door").acquire(timeout=30)))
        thread.start()
        while not one.survey("door")[0].waiters:
            pass
        assert first.release()
        thread.join(30)
        assert granted[0].token > first.token
        assert granted[0].release()
        assert one.lock("door").try_acquire() is not None


def test_a_name_that_another_has_made_is_taken_all_the_same(ensemble: Ensemble) -> None:
    """It was taken for new, and is not; and the other way round."""
    url = ensemble.url
    with holdfast.connect(url, namespace="both") as one, holdfast.connect(url, namespace="both") as two:
        for number in range(3):
            with one.lock(f"door/{number}"):
                assert two.lock(f"door/{number}").try_acquire() is None
            with two.lock(f"door/{number}"):
                assert one.lock(f"door/{number}").try_acquire() is None
            two._wire.call(Batch((Delete(f"/both/door%2F{number}"),)), 5.0)
            with one.lock(f"door/{number}"):  # which takes it for being there
                assert two.lock(f"door/{number}").try_acquire() is None
