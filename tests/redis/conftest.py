"""One plain server for all tests of this folder, emptied before each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.redis_server import RedisServer, running


@pytest.fixture(scope="session")
def shared_server() -> Iterator[RedisServer]:
    with running() as server:
        yield server


@pytest.fixture
def server(shared_server: RedisServer) -> RedisServer:
    shared_server.raw("FLUSHALL")
    shared_server.raw("SCRIPT", "FLUSH")
    return shared_server
