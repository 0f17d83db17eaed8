"""What etcd remembers of a hold that did not end cleanly: where it stands, for how long, and what it costs others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.etcd.rpc import b64, end_of, unb64
from holdfast.model import Predecessor
from tests.etcd.cluster import Cluster, await_true, running


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


def keys_of(cluster: Cluster, name: str) -> dict[str, dict[str, Any]]:
    """What stands in the line of a name, by what follows the name."""
    line = f"holdfast/line/{name}\0"
    reply = cluster.members[0].rpc("/v3/kv/range", key=b64(line), range_end=end_of(line))
    return {unb64(kv["key"])[len(line) :]: kv for kv in reply.get("kvs", ())}


def end_sessions(cluster: Cluster, name: str) -> None:
    """As if the processes of all who claim this name had died a ttl ago."""
    claims = [kv for key, kv in keys_of(cluster, name).items() if not key.startswith("~")]
    for lease in {kv["lease"] for kv in claims}:
        cluster.members[0].rpc("/v3/lease/revoke", ID=lease)


def put_right(lease: holdfast.Lease, predecessor: Predecessor) -> None:
    """Nothing is to be done."""


def fail(lease: holdfast.Lease, predecessor: Predecessor) -> None:
    raise ZeroDivisionError


def unrecovered(locks: holdfast.Coordinator, name: str) -> Predecessor | None:
    return next((view.unrecovered for view in locks.survey(name) if view.name == name), None)


def counted(locks: holdfast.Coordinator, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every request of a coordinator from now on."""
    requests: list[Any] = []
    client: Any = locks._wire._client  # type: ignore[attr-defined]
    call = client.call

    def counting(request: Any, deadline: float) -> Any:
        requests.append(request)
        return call(request, deadline)

    monkeypatch.setattr(client, "call", counting)
    return requests


def test_a_clean_pair_is_two_requests_and_leaves_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast.connect(cluster.url) as locks:
        for options in ({}, {"recover": put_right}, {"renew": False}):
            with locks.lock("warm", **options):
                pass
            requests = counted(locks, monkeypatch)
            with locks.lock("clean", **options):
                notes = [key for key in keys_of(cluster, "clean") if key.startswith("~~")]
                assert len(notes) == len(options)  # without, it costs nothing
            assert len(requests) == 2
            assert keys_of(cluster, "clean") == {}
            monkeypatch.undo()
    assert cluster.leases() == []


def test_after_an_unclean_end_the_next_one_with_recover_is_told_by_its_take(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holdfast.connect(cluster.url) as locks, holdfast.connect(cluster.url) as other:
        first = locks.lock("told", recover=put_right).acquire()
        end_sessions(cluster, "told")
        left = Predecessor(first.token, first.owner, "session")
        assert unrecovered(other, "told") == left
        requests = counted(other, monkeypatch)
        lease = other.lock("told", recover=put_right).acquire()
        assert lease.predecessor == left
        assert len(requests) == 2  # the take, and that it is put right
        assert lease.release()
        assert keys_of(cluster, "told") == {}


def test_what_is_to_be_put_right_stays_and_the_rest_is_forgotten_after_a_day(cluster: Cluster) -> None:
    with holdfast.connect(cluster.url) as locks:
        for lock in (locks.lock("stays", recover=put_right), locks.lock("fades", renew=False)):
            lock.acquire()
            end_sessions(cluster, lock.name)
    [(key, stays)] = keys_of(cluster, "stays").items()
    assert key.startswith("~~")
    assert "lease" not in stays
    [(_, fades)] = keys_of(cluster, "fades").items()
    left = cluster.members[0].rpc("/v3/lease/timetolive", ID=fades["lease"])
    assert 86000 < int(left["TTL"]) <= 86400
    with holdfast.connect(cluster.url) as locks:
        assert unrecovered(locks, "fades") is None
        with locks.lock("fades") as lease:
            assert lease.predecessor is not None
            assert lease.predecessor.ended == "expired"
        with locks.lock("stays", recover=put_right):
            pass
    assert keys_of(cluster, "fades") == keys_of(cluster, "stays") == {}
    cluster.members[0].rpc("/v3/lease/revoke", ID=fades["lease"])


def test_the_next_note_takes_nobodys_place(cluster: Cluster) -> None:
    """Of one coordinator that loses the same name again and again, each end is remembered until all is put right."""
    with holdfast.connect(cluster.url) as locks, holdfast.connect(cluster.url) as operator:
        tokens: list[int] = []
        for _ in range(3):
            lease = (locks.lock("again") if tokens else locks.lock("again", recover=put_right)).acquire()
            tokens.append(lease.token)
            assert operator.evict("again", lease.token)
            lease.release()
        last = unrecovered(operator, "again")
        assert last is not None
        assert (last.token, last.ended) == (tokens[-1], "evicted")
        with pytest.raises(ZeroDivisionError):
            locks.lock("again", recover=fail).acquire()
        assert unrecovered(operator, "again") == last
        with locks.lock("again", recover=put_right):
            assert unrecovered(operator, "again") is None
        assert keys_of(cluster, "again") == {}


@pytest.mark.parametrize("ended", ["evicted", "session"])
def test_who_held_after_a_wait_is_named_as_well(cluster: Cluster, ended: str) -> None:
    name = f"waited-{ended}"

    async def main() -> None:
        async with (
            holdfast.aio.connect(cluster.url) as one,
            holdfast.aio.connect(cluster.url) as two,
            holdfast.aio.connect(cluster.url) as three,
        ):
            first = await one.lock(name).acquire()
            waiters = []
            for locks in (two, three):
                waiters.append(asyncio.ensure_future(locks.lock(name, recover=lambda *_: None).acquire()))
                count = 1 + len(waiters)
                await asyncio.to_thread(await_true, lambda: len(keys_of(cluster, name)) == count, "a waiter")  # noqa: B023
            assert await first.release()
            second = await waiters[0]
            assert second.predecessor is None
            if ended == "evicted":
                assert await one.evict(name, second.token)
            else:
                [lease] = {
                    kv["lease"]
                    for kv in (await asyncio.to_thread(keys_of, cluster, name)).values()
                    if int(kv["create_revision"]) == second.token
                }
                await asyncio.to_thread(cluster.members[0].rpc, "/v3/lease/revoke", ID=lease)
            third = await waiters[1]
            assert third.predecessor == Predecessor(second.token, second.owner, ended)
            assert await third.release()

    asyncio.run(main())
    assert keys_of(cluster, name) == {}


def test_a_wait_that_is_given_up_leaves_no_note(cluster: Cluster) -> None:
    with holdfast.connect(cluster.url) as locks, holdfast.connect(cluster.url) as other:
        with locks.lock("given-up"):
            with pytest.raises(holdfast.NotAcquired):
                other.lock("given-up", recover=put_right, timeout=0.2).acquire()
            assert [key for key in keys_of(cluster, "given-up") if key.startswith("~")] == []
        with other.lock("given-up") as lease:
            assert lease.predecessor is None
