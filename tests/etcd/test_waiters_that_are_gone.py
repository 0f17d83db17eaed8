"""A waiter whose claim is gone is not granted, whatever it hears of the claim before it."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.etcd.queue import MARKED, WAITING, KeyEntry
from holdfast.backends.etcd.rpc import b64
from holdfast.backends.etcd.watch import Watch, for_one_before
from holdfast.backends.ordered_keys.handoff import HANDED, LOOK
from tests.etcd.cluster import Cluster, await_true

OLD, OWN = b64("holdfast/line/door\0a.0"), b64("holdfast/line/door\0b.0")


def end_of_waiting(cluster: Cluster, locks: Any, how: str) -> None:
    """Its lease is revoked, or its key deleted, behind its back."""
    [state] = locks._core.backend.sessions.states.values()
    if how == "revoked":
        cluster.members[0].rpc("/v3/lease/revoke", ID=state.session.lease)
    else:
        cluster.members[0].rpc("/v3/kv/deleterange", key=state.key)


hows = pytest.mark.parametrize("how", ["revoked", "deleted"])


@hows
def test_threads_a_waiter_whose_key_is_gone_is_not_granted(state_cluster: Cluster, how: str) -> None:
    url = state_cluster.url
    with holdfast.connect(url) as one, holdfast.connect(url) as two, holdfast.connect(url) as three:
        first = one.lock("door").acquire()
        got: dict[str, Any] = {}

        def wait(who: str, locks: holdfast.Coordinator) -> threading.Thread:
            thread = threading.Thread(target=lambda: got.update({who: locks.lock("door").acquire(timeout=60)}))
            thread.start()
            return thread

        def waiting() -> int:
            return sum(len(view.waiters) for view in one.survey("door"))

        threads = [wait("b", two)]
        await_true(lambda: waiting() == 1, "b")
        threads.append(wait("c", three))
        await_true(lambda: waiting() == 2, "c")
        await_true(lambda: state_cluster.watchers() >= 8, "both to listen")
        end_of_waiting(state_cluster, two, how)
        assert first.release()
        await_true(lambda: got, "a holder")
        [(who, lease)] = got.items()
        [view] = one.survey("door")
        assert [(claim.owner, claim.token) for claim in view.holders] == [(lease.owner, lease.token)]
        assert lease.release()
        for thread in threads:
            thread.join(30)
        other = got["c" if who == "b" else "b"]
        assert other.token > lease.token
        assert other.release()


@hows
def test_asyncio_a_waiter_whose_key_is_gone_is_not_granted(state_cluster: Cluster, how: str) -> None:
    url = state_cluster.url

    async def play() -> None:
        async with (
            holdfast.aio.connect(url) as one,
            holdfast.aio.connect(url) as two,
            holdfast.aio.connect(url) as three,
        ):
            first = await one.lock("door").acquire()

            async def until_waiting(count: int) -> None:
                for _ in range(3000):
                    if sum(len(view.waiters) for view in await one.survey("door")) == count:
                        return
                    await asyncio.sleep(0.01)
                raise AssertionError("nobody waits")

            b = asyncio.ensure_future(two.lock("door").acquire(timeout=60))
            await until_waiting(1)
            c = asyncio.ensure_future(three.lock("door").acquire(timeout=60))
            await until_waiting(2)
            await asyncio.to_thread(await_true, lambda: state_cluster.watchers() >= 8, "both to listen")
            await asyncio.to_thread(end_of_waiting, state_cluster, two, how)
            assert await first.release()
            done, pending = await asyncio.wait([b, c], return_when=asyncio.FIRST_COMPLETED)
            [lease] = [task.result() for task in done]
            [view] = await one.survey("door")
            assert [(claim.owner, claim.token) for claim in view.holders] == [(lease.owner, lease.token)]
            assert await lease.release()
            [other] = [await task for task in pending]
            assert other.token > lease.token
            assert await other.release()

    asyncio.run(play())


# By hand


def watch(granted: int = MARKED) -> Watch:
    before = KeyEntry(OLD, "door", "a-1", 7, 7, 1, {"g": granted})
    return for_one_before(before, OWN, granted == MARKED, 7, None)


def ended(*keys: str) -> bytes:
    events = [{"type": "DELETE", "kv": {"key": key, "mod_revision": "9"}} for key in keys]
    return json.dumps({"result": {"header": {"revision": "9"}, "events": events}}).encode()


def test_the_end_of_the_claim_before_is_the_grant() -> None:
    assert watch().glimpse(ended(OLD)) == HANDED
    assert watch().hear(ended(OLD)) == HANDED


def test_the_end_of_its_own_claim_is_no_grant() -> None:
    assert watch().glimpse(ended(OWN)) is None
    assert watch().hear(ended(OWN)) == LOOK


def test_whose_own_claim_has_ended_is_not_granted_by_what_comes_after() -> None:
    one = watch()
    assert one.glimpse(ended(OWN) + ended(OLD)) is None
    assert one.hear(ended(OWN)) == LOOK
    assert one.glimpse(ended(OLD)) is None
    assert one.hear(ended(OLD)) == LOOK


def test_an_end_that_is_not_all_there_is_not_judged_by_a_glimpse() -> None:
    data = ended(OLD)
    assert watch().glimpse(data[: data.index(OLD.encode())]) is None
    assert watch(WAITING).glimpse(data) is None
