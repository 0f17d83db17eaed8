"""Five servers for all tests that do not break them; each test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.redlock.quorums import Servers

_numbers = itertools.count(1)


@pytest.fixture
def five(redlock_servers: Servers) -> Iterator[Servers]:
    """Running when the test begins, and when it has ended."""
    yield redlock_servers
    redlock_servers.resume()


@pytest.fixture
def namespace() -> str:
    return f"test{next(_numbers)}"
