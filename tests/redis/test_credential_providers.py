"""Credential providers are code of the users: asked for each connection, beside it, for no longer than it has."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
import redis

import holdfast
from holdfast.backends import open_engine
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.redis.faces import both, pair, run
from tests.redis.test_bounds import SLACK
from tests.redis.test_opening import longest_block
from tests.support.redis_server import RedisServer

USER = ("locks", "s3cret")


class Provider(redis.CredentialProvider):
    def __init__(self, *said: str) -> None:
        self.said = said
        self.asked = 0
        self.hangs = False
        self.fails = False
        self.go_on = threading.Event()

    def get_credentials(self) -> Any:
        self.asked += 1
        if self.fails:
            raise ValueError("no token today")
        if self.hangs:
            self.go_on.wait(30)
        return self.said


@pytest.fixture
def secured(server: RedisServer) -> Any:
    server.raw("ACL", "SETUSER", USER[0], "reset", "on", f">{USER[1]}", "~*", "&*", "+@all")
    yield server
    server.raw("ACL", "DELUSER", USER[0])


def client(server: RedisServer, provider: Provider) -> redis.Redis:
    return redis.Redis(port=server.port, credential_provider=provider)


@both
def test_it_is_asked(secured: RedisServer, face: str) -> None:
    provider = Provider(*USER)
    assert pair(face, client(secured, provider)) > 0
    assert provider.asked
    with pytest.raises(Misconfigured, match="user or password"):
        pair(face, client(secured, Provider(USER[0], "wrong")))


@both
def test_one_that_fails_is_named(secured: RedisServer, face: str) -> None:
    provider = Provider(*USER)
    provider.fails = True
    with pytest.raises(BackendUnavailable, match=r"credential provider.*no token today"):
        pair(face, client(secured, provider))


def test_one_that_hangs_blocks_no_loop(secured: RedisServer) -> None:
    provider = Provider(*USER)
    provider.hangs = True

    async def main() -> float:
        opening = asyncio.ensure_future(open_engine(client(secured, provider), "holdfast", 1.0).async_wire())
        blocked = await longest_block(opening)
        with pytest.raises(BackendUnavailable, match="credential provider"):
            await opening
        return blocked

    try:
        assert run(main()) < SLACK
    finally:
        provider.go_on.set()


def test_one_that_hangs_is_within_the_bound(secured: RedisServer) -> None:
    provider = Provider(*USER)
    with holdfast.connect(client(secured, provider), request_timeout=1, ttl=30) as locks:
        lease = locks.lock("a").acquire()
        provider.hangs = True
        secured.raw("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        secured.raw("CLIENT", "KILL", "TYPE", "pubsub")
        began = time.monotonic()
        with pytest.raises(BackendUnavailable):
            lease.renew()
        assert time.monotonic() - began < 2 + SLACK
        provider.hangs = False
        provider.go_on.set()
        assert lease.release()
