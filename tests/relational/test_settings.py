"""What is made at the beginning is made once."""

from __future__ import annotations

import threading

import holdfast


def test_two_at_once_make_one_schema(url: str) -> None:
    clusters = set()

    def connect() -> None:
        with holdfast.connect(url) as locks, locks.lock("door") as lease:
            clusters.add(lease.sequencer().cluster)

    threads = [threading.Thread(target=connect) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clusters) == 1
