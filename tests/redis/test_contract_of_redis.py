"""Every promise of the contract, on one Redis server, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast.testing
from tests.support.redis_server import running


class TestRedis(holdfast.testing.Contract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def server(cls) -> Iterator[None]:
        with running() as server:
            cls.url = server.url
            yield
