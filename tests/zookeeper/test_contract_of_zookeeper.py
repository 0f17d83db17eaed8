"""Every promise of the contract, on an ensemble of three, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast.testing
from tests.zookeeper.ensemble import running


class TestZooKeeper(holdfast.testing.Contract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def ensemble(cls) -> Iterator[None]:
        with running() as ensemble:
            cls.url = ensemble.url
            yield
