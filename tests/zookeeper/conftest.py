"""One ensemble of three for all tests of this folder that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.zookeeper.ensemble import Ensemble, running


@pytest.fixture(scope="session")
def ensemble() -> Iterator[Ensemble]:
    with running() as found:
        yield found
