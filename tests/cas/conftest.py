"""A client of the Redis server that all tests share, emptied before each test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.redis_server import RedisServer


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Any]:
    redis_server.raw("FLUSHALL")
    redis_server.raw("SCRIPT", "FLUSH")
    with redis_server.client() as client:
        yield client
