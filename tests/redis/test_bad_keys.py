"""One key that is not ours, or not as we left it, concerns one name: it spoils neither a batch nor a survey."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

import holdfast
from holdfast.backends import open_engine
from holdfast.backends.queue_backend import Renew, Survey, Take
from holdfast.model import Claim, LockSpec
from tests.redis.faces import both, run
from tests.support.redis_server import RedisServer

DAY_MS = 24 * 3600 * 1000


def claims(count: int, **options: Any) -> list[Claim]:
    return [Claim(LockSpec(f"n{number}", ttl=30.0, **options), f"owner-{number}", "actor") for number in range(count)]


def spoil(server: RedisServer, how: str, name: str) -> None:
    server.raw("DEL", f"holdfast/line/{name}")
    if how == "a hash":
        server.raw("HSET", f"holdfast/line/{name}", "a", "b")
    else:
        server.raw("SET", f"holdfast/line/{name}", how)


def carry_out(face: str, url: str, *requests: Any) -> list[Any]:
    """These requests (or functions to be called between them), one after the other."""
    engine = open_engine(url, "holdfast", 5.0)

    async def asynchronous() -> list[Any]:
        wire = await engine.async_wire()
        replies = [each() if callable(each) else await wire.call(each, 5.0) for each in requests]
        await wire.close()
        return replies

    if face == "asyncio":
        found: list[Any] = run(asynchronous())
        return found
    wire = engine.wire()
    replies = [each() if callable(each) else wire.call(each, 5.0) for each in requests]
    wire.close()
    return replies


@pytest.mark.parametrize("how", ["a hash", "nonsense", "1234567890123456 owner-1 nonsense", ""])
@pytest.mark.parametrize("capacity", [1, 3])
@both
def test_a_batch_of_renewals_is_renewed_but_for_that_one(
    server: RedisServer, face: str, capacity: int, how: str
) -> None:
    def granted() -> list[Claim]:
        return [replace(claim, token=token) for claim, token in zip(mine, tokens, strict=True)]

    mine = claims(3, capacity=capacity)
    taken = carry_out(face, server.url, *(Take((claim,), True) for claim in mine))
    tokens = [each[0].token for each in taken]
    [_, said] = carry_out(face, server.url, lambda: spoil(server, how, "n1"), Renew(granted()))
    assert said == ["held", "refused", "held"]


@both
def test_a_user_that_may_not_write_any_more_is_told_nothing_of_its_holds(server: RedisServer, face: str) -> None:
    """What the server refuses to write says nothing about the hold: nobody can tell, and it is not lost."""
    [mine] = claims(1)
    url = f"redis://locks:s3cret@127.0.0.1:{server.port}"
    server.raw("ACL", "SETUSER", "locks", "reset", "on", ">s3cret", "~*", "&*", "+@all")
    try:
        [taken] = carry_out(face, url, Take((mine,), True))
        granted = replace(mine, token=taken[0].token)
        no_more = lambda: server.raw("ACL", "SETUSER", "locks", "-set")  # noqa: E731
        assert carry_out(face, url, no_more, Renew([granted]))[1] == ["unknown"]
    finally:
        server.raw("ACL", "DELUSER", "locks")


@both
def test_a_survey_shows_the_others(server: RedisServer, face: str) -> None:
    mine = claims(3)
    replies = carry_out(
        face, server.url, *(Take((each,), True) for each in mine), lambda: spoil(server, "a hash", "n1"), Survey("")
    )
    assert [view.name for view in replies[-1]] == ["n0", "n2"]


@both
def test_a_delay_of_more_than_a_day_is_kept_for_so_long(server: RedisServer, face: str) -> None:
    def kept() -> int:
        return int(server.client().pttl("holdfast/line/n0"))

    [mine] = claims(1, lock_delay=3 * DAY_MS / 1000)
    [[taken], after_take] = carry_out(face, server.url, Take((mine,), True), kept)
    [said, after_renewal] = carry_out(face, server.url, Renew([replace(mine, token=taken.token)]), kept)
    assert said == ["held"]
    assert after_take > 3 * DAY_MS
    assert after_renewal > 3 * DAY_MS


@pytest.mark.parametrize("kind", ["rwlock", "semaphore", "lock"])
def test_names_that_nobody_waits_for_any_more_are_forgotten(server: RedisServer, kind: str) -> None:
    """The note of contended names does not grow with every name that ever was."""

    def contend(name: str) -> None:
        def one(locks: holdfast.Coordinator) -> Any:
            if kind == "semaphore":
                return locks.semaphore(name, permits=2, weight=2, ttl=0.3)
            return locks.rwlock(name, ttl=0.3).write() if kind == "rwlock" else locks.lock(name, ttl=0.3)

        with one(mine), pytest.raises(holdfast.NotAcquired):
            one(theirs).acquire(timeout=0.02)

    client = server.client()
    with holdfast.connect(server.url) as mine, holdfast.connect(server.url) as theirs:
        for number in range(30):
            contend(f"a/{number}")
        time.sleep(1.0)  # a name is noted for up to twice the patience of who waits
        contend("b")
    assert client.zcard("holdfast/contended") <= 3
    assert 0 < client.pttl("holdfast/contended") <= 2 * DAY_MS
