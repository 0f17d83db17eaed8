"""What is asked for the search of deadlocks is about lines with waiters: the rest may be many, and is not sent."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import holdfast
from tests.relational.house import of_sessions


@pytest.mark.parametrize("sessions", [False, True], ids=["table", "sessions"])
def test_only_lines_with_waiters_are_sent_where_others_do_not_matter(url: str, sessions: bool) -> None:
    url = of_sessions(url) if sessions else url
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        leases = [locks.lock(name).acquire() for name in ("left", "right", "door")]
        backend: Any = locks._core.backend
        waiter = threading.Thread(target=lambda: others.lock("door").acquire(timeout=60).release())
        waiter.start()
        while not any(view.waiters for view in locks.survey("door")):
            pass
        assert [view.name for view in locks._run(backend.survey("", contended=True))] == ["door"]
        assert len(locks.survey()) == len(leases)
        assert all(lease.release() for lease in leases)
        waiter.join()
