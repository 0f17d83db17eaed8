"""What a line costs does not grow with those who stand in it, and many leave it with few writes."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.long_lines import FEW, MANY, assert_flat, costs, counted
from tests.zookeeper.ensemble import Ensemble


@pytest.mark.parametrize("kind", ["lock", "writer"])
def test_a_long_line_costs_as_much_as_a_short_one(
    ensemble: Ensemble, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Semaphores are left out: who becomes the first of those who wait for a permit lists the line."""
    with counted(monkeypatch) as traffic:
        few, many = (asyncio.run(costs(ensemble.url, kind, count, traffic)) for count in (FEW, MANY))
    assert_flat(few, many)
