"""The ensemble of three that all tests share, for the tests of this folder that leave it as they found it."""

from __future__ import annotations

import pytest

from tests.zookeeper.ensemble import Ensemble


@pytest.fixture(scope="session")
def ensemble(zookeeper_ensemble: Ensemble) -> Ensemble:
    return zookeeper_ensemble
