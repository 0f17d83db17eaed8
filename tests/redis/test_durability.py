"""A grant that replicas or a disk must confirm is returned confirmed, or withdrawn; promises follow the settings."""

from __future__ import annotations

import threading

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.redis.faces import both, pair, run
from tests.support.redis_server import RedisServer, running
from tests.support.redis_topologies import await_true, with_replicas


@both
def test_a_grant_that_no_replica_confirms_is_withdrawn(face: str) -> None:
    with with_replicas(1) as (primary, [replica]):
        url = f"{primary.url}?wait_replicas=1&wait_timeout=0.2"
        assert pair(face, url) > 0
        replica.pause()
        try:
            with pytest.raises(BackendUnavailable):
                _try(face, url)
            await_true(lambda: not _holders(primary), "the claim to be withdrawn")
        finally:
            replica.resume()


def _try(face: str, url: str) -> None:
    async def asynchronous() -> None:
        async with holdfast.aio.connect(url) as locks:
            await locks.lock("a", timeout=0.5).acquire()

    if face == "asyncio":
        run(asynchronous())
    else:
        with holdfast.connect(url) as locks:
            locks.lock("a", timeout=0.5).acquire()


def _holders(server: RedisServer) -> list[holdfast.LockView]:
    with holdfast.connect(server.url) as locks:
        return locks.survey()


def test_a_grant_by_push_is_confirmed_by_its_own_taker() -> None:
    """Who hands over has waited for nobody: the new holder writes, and waits for that (TRAPS 21)."""
    with with_replicas(1) as (primary, _), holdfast.connect(f"{primary.url}?wait_replicas=1") as locks:
        first = locks.lock("a").acquire()
        tokens: list[int] = []

        def take() -> None:
            with locks.lock("a", timeout=20) as lease:
                tokens.append(lease.token)

        waiter = threading.Thread(target=take)
        waiter.start()
        await_true(lambda: locks.survey("a")[0].waiters, "the waiter")
        calls = primary.client().info("commandstats")["cmdstat_wait"]["calls"]
        assert first.release()
        waiter.join(20)
        assert tokens > [first.token]
        assert primary.client().info("commandstats")["cmdstat_wait"]["calls"] > calls


def test_an_unreplicated_grant_of_a_single_server_is_refused() -> None:
    """Zero acknowledgements are not enough (TRAPS 21)."""
    with running() as server, pytest.raises(BackendUnavailable):
        _try("sync", f"{server.url}?wait_replicas=1&wait_timeout=0.1")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "appendonly"),
        ({"appendonly": "yes"}, "appendfsync"),
        ({"appendonly": "yes", "appendfsync": "always", "maxmemory": "100mb"}, None),
        (
            {"appendonly": "yes", "appendfsync": "always", "maxmemory": "100mb", "maxmemory_policy": "allkeys-lru"},
            "maxmemory-policy",
        ),
        ({"appendonly": "yes", "appendfsync": "always"}, None),
    ],
)
def test_durable_is_promised_only_where_the_settings_keep_it(settings: dict[str, str], why: str | None) -> None:
    with running(**settings) as server:
        if why is None:
            with holdfast.connect(server.url, require={"durable"}) as locks:
                assert "durable" in locks.promises
        else:
            with pytest.raises(Misconfigured, match=why):
                holdfast.connect(server.url, require={"durable"})
            with holdfast.connect(server.url) as locks:
                assert why in locks.promises.notes["durable"]
        with pytest.raises(Misconfigured, match="linearizable"):
            holdfast.connect(server.url, require={"linearizable"})


def test_where_a_replica_may_take_over_it_must_have_been_told() -> None:
    with with_replicas(1, appendonly="yes", appendfsync="always") as (primary, _):
        with pytest.raises(Misconfigured, match="wait_replicas"):
            holdfast.connect(primary.url, require={"durable"})
        with holdfast.connect(f"{primary.url}?wait_replicas=1", require={"durable"}) as locks:
            assert locks.lock("a").acquire().release()


def test_a_grant_survives_a_crash_where_durable_is_promised() -> None:
    with running(appendonly="yes", appendfsync="always") as server:
        with holdfast.connect(server.url, require={"durable"}) as locks:
            lease = locks.lock("a").acquire()
            server.stop()
            server.start()
            assert locks.lock("a").try_acquire() is None
            lease.renew()
            assert lease.release()
