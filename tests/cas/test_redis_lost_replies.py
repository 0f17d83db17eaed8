"""A reply of Redis that is lost: the write is settled, or told as `OutcomeUnknown`; it is never done twice.

Faults are put between a register and the real server: a request is carried out and its reply lost, lost before it is
carried out, or sent again by the client itself, as redis-py does.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis

from holdfast import cas
from holdfast.cas.redis import requests
from holdfast.cas.redis.requests import RedisScript
from tests.cas.faulty import faulty
from tests.redis.proxy import proxied
from tests.support.redis_server import RedisServer


class Redis:
    """A register on a real server whose writes meet faults, one after the other."""

    lost: Exception = redis.ConnectionError("lost")

    def __init__(self, server: RedisServer, *faults: str, between: Callable[[], object] = str) -> None:
        server.raw("FLUSHALL")
        self.client = server.client()
        self.register = cas.RedisKey(self.client, "stock/7", cas.INTEGER)
        perform, self.faults, self.writes = self.register._perform, iter(faults), 0

        def strike(request: Any) -> object:
            if not isinstance(request, RedisScript) or "receipt" not in request.text:
                return perform(request)
            self.writes += 1
            return faulty(lambda: perform(request), next(self.faults, ""), self.lost, between)

        self.register.create(5)
        self.register._perform = strike


@pytest.mark.parametrize("faults", [("after",), ("before",), ("twice",), ("before", "after"), ("after", "after")])
@pytest.mark.parametrize("lease", [None, 33])
def test_redis_settles_it(redis_server: RedisServer, faults: tuple[str, ...], lease: int | None) -> None:
    at = Redis(redis_server, *faults)
    assert at.register.update(lambda old: old + 1, lease=lease) == 6
    assert at.client.get("stock/7") == b"6"
    assert at.register.stats == cas.Stats(updates=2, tries=2, conflicts=0)


@pytest.mark.parametrize("fault", ["after", "twice"])
def test_redis_settles_it_also_when_others_have_written_since(redis_server: RedisServer, fault: str) -> None:
    """Compared with the value alone, the copy would meet 106 and count once more: 107."""
    at = Redis(redis_server, fault, between=lambda: redis_server.client().incrby("stock/7", 100))
    assert at.register.update(lambda old: old + 1) == 6
    assert at.client.get("stock/7") == b"106"


@pytest.mark.parametrize("fault", ["after", "twice"])
def test_redis_settles_it_also_when_a_newer_holder_has_claimed_since(redis_server: RedisServer, fault: str) -> None:
    def newer() -> None:
        cas.RedisKey(redis_server.client(), "stock/7", cas.INTEGER).update(lambda old: old + 100, lease=34)

    at = Redis(redis_server, fault, between=newer)
    assert at.register.update(lambda old: old + 1, lease=33) == 6
    assert at.client.get("stock/7") == b"106"
    with pytest.raises(cas.FenceRejected):
        at.register.update(lambda old: old + 1, lease=33)


@pytest.mark.parametrize("fault", ["after", "before"])
def test_redis_tells_when_nothing_gets_through(redis_server: RedisServer, fault: str) -> None:
    at = Redis(redis_server, *[fault] * 9)
    with pytest.raises(cas.OutcomeUnknown, match="at most once"):
        at.register.update(lambda old: old + 1)
    assert at.writes == requests.MAX_SENDS_COUNT
    assert at.client.get("stock/7") == (b"6" if fault == "after" else b"5")
    assert at.register.stats.updates == 1


def test_a_conflict_is_not_believed_once_the_receipt_may_have_expired(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgets() -> None:
        for key in redis_server.client().keys("holdfast/cas/*"):
            redis_server.client().delete(key)

    monkeypatch.setattr(requests, "TRUSTED_S", -1.0)
    at = Redis(redis_server, "after", between=forgets)
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1)
    assert at.client.get("stock/7") == b"6"


def test_a_refusal_is_not_believed_once_the_receipt_may_have_expired(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer() -> None:
        client = redis_server.client()
        cas.RedisKey(client, "stock/7", cas.INTEGER).update(lambda old: old + 100, lease=34)
        client.delete(*client.keys("holdfast/cas/*"))

    at = Redis(redis_server, "twice", between=newer)
    monkeypatch.setattr(requests, "TRUSTED_S", -1.0)
    with pytest.raises(cas.OutcomeUnknown):
        at.register.update(lambda old: old + 1, lease=33)
    assert at.client.get("stock/7") == b"106"


@pytest.mark.parametrize("fault", ["after", "before"])
@pytest.mark.parametrize("kind", ["ReadOnlyError", "ClusterDownError", "MasterDownError", "TryAgainError"])
def test_a_fail_over_is_settled_by_the_server_that_takes_over(redis_server: RedisServer, fault: str, kind: str) -> None:
    at = Redis(redis_server, fault, fault)
    at.lost = getattr(redis.exceptions, kind)("of a server that is none any more")
    assert at.register.update(lambda old: old + 1) == 6
    assert at.client.get("stock/7") == b"6"


def test_a_refusal_of_the_server_is_not_tried_again(redis_server: RedisServer) -> None:
    at = Redis(redis_server)

    def change(old: int) -> int:
        at.client.delete("stock/7")
        at.client.lpush("stock/7", 1)
        return old

    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        at.register.update(change)
    assert at.writes == 1


def test_redis_behind_a_proxy_that_loses_replies(redis_server: RedisServer) -> None:
    """With redis-py's own retries, as people have them: every update that was acknowledged is there once."""
    redis_server.raw("FLUSHALL")
    cas.RedisKey(redis_server.client(), "stock/7", cas.INTEGER).create(0)
    done, open_ends = itertools.count(), itertools.count()
    with proxied(redis_server.port) as proxy:

        def work() -> None:
            with redis.Redis(port=proxy.port, socket_timeout=1) as client:
                retry = cas.Retry(attempts=200, timeout=60)
                counter = cas.RedisKey(client, "stock/7", cas.INTEGER, retry=retry)
                for _ in range(25):
                    try:
                        counter.update(lambda old: old + 1)
                        next(done)
                    except cas.OutcomeUnknown:
                        next(open_ends)
                    except redis.RedisError:
                        pass  # of a read: nothing was written

        proxy.loss = 0.1
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert proxy.lost > 5
    acknowledged, unknown = next(done), next(open_ends)
    assert acknowledged > 20
    value = int(redis_server.client().get("stock/7"))
    assert acknowledged <= value <= acknowledged + unknown
