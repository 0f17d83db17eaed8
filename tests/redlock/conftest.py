"""Five servers for all tests that do not break them; each test has a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.redlock.quorums import Servers, quorum

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shared_five() -> Iterator[Servers]:
    with quorum(5) as servers:
        yield servers


@pytest.fixture
def five(shared_five: Servers) -> Iterator[Servers]:
    """Running when the test begins, and when it has ended."""
    yield shared_five
    shared_five.resume()


@pytest.fixture
def namespace() -> str:
    return f"test{next(_numbers)}"
