"""The cluster that all tests share, for the tests of this folder that break nothing of it."""

from __future__ import annotations

import pytest

from tests.etcd.cluster import Cluster


@pytest.fixture(scope="session")
def state_cluster(etcd_cluster: Cluster) -> Cluster:
    return etcd_cluster
