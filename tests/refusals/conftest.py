"""Each test begins as a process does in which nothing has failed yet."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.fenced.refusal._failures", {})
