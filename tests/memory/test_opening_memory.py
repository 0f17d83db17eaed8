"""One store for one address, whoever opens it."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.backends.memory import engine


def test_two_threads_that_open_it_at_once_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each would hold the lock, in a store of its own."""
    making, go_on = threading.Event(), threading.Event()

    class SlowEngine(engine.MemoryEngine):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            if not making.is_set():
                making.set()
                assert go_on.wait(60)

    monkeypatch.setattr(engine, "MemoryEngine", SlowEngine)
    url = f"memory://{os.urandom(4).hex()}"
    with ThreadPoolExecutor() as threads:
        slow = threads.submit(engine.open_engine, url, "", 5.0)
        assert making.wait(60)
        fast = engine.open_engine(url, "", 5.0)
        go_on.set()
        assert slow.result(60) is fast
