"""The plain server that all tests share, emptied before each test of this folder."""

from __future__ import annotations

import pytest

from tests.redis.reference import SameAsTheReference
from tests.support.redis_server import RedisServer


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    redis_server.raw("FLUSHALL")
    redis_server.raw("SCRIPT", "FLUSH")
    return redis_server


@pytest.fixture
def machine(server: RedisServer) -> type[SameAsTheReference]:
    SameAsTheReference.server = server
    return SameAsTheReference
