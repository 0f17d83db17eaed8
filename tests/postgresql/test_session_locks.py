"""`postgresql+session://`: what is PostgreSQL's own. The rest: `tests/relational/test_session_locks.py`."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.errors import Misconfigured
from tests.postgresql.pooler import pooling
from tests.postgresql.server import Server


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_refused(server: Server, mode: str) -> None:
    with pooling(server, mode) as pooler, pytest.raises(Misconfigured, match="pooler"):
        holdfast.connect(pooler.url().replace("postgresql://", "postgresql+session://"))
