"""Two real processes for the tests that pause them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fenced.paused import Actor, actors


@pytest.fixture
def pair() -> Iterator[tuple[Actor, Actor]]:
    with actors() as two:
        yield two
