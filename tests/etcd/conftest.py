"""One cluster for the tests of this folder that break nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.etcd.cluster import Cluster, running


@pytest.fixture(scope="session")
def standing_cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster
