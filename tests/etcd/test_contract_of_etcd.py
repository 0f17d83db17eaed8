"""Every promise of the contract, on three members, for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast.testing
from tests.etcd.cluster import running


class TestEtcd(holdfast.testing.Contract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def cluster(cls) -> Iterator[None]:
        with running() as cluster:
            cls.url = cluster.url
            yield
