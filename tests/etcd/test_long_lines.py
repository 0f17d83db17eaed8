"""What a line costs does not grow with those who stand in it, and many leave it with few requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.etcd.cluster import Cluster, running
from tests.support.long_lines import FEW, MANY, assert_flat, costs, counted


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


@pytest.mark.parametrize("kind", ["lock", "writer", "permit"])
def test_a_long_line_costs_as_much_as_a_short_one(cluster: Cluster, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as traffic:
        few, many = (asyncio.run(costs(cluster.url, kind, count, traffic)) for count in (FEW, MANY))
    assert_flat(few, many)
