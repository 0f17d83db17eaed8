"""Records on the engines without a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from tests.support.record_checks import CHECKS, RecordClient


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("scheme", ["memory", "sqlite"])
def test_records(scheme: str, check: Callable[[RecordClient], None], tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}" if scheme == "memory" else f"sqlite:///{tmp_path}/locks.db"
    with holdfast.connect(url) as locks:
        check(RecordClient(locks._engine.backend, locks._run))
