"""Code of a user's runs beside whoever has news for it; whoever closes waits for it, and for nothing else."""

from __future__ import annotations

import threading
import time

from holdfast.sync.hooks import Beside


def test_a_worker_that_another_thread_is_just_starting_is_waited_for() -> None:
    """It cannot be joined yet, which must not be an error of whoever closes."""
    beside, told = Beside(1), list[int]()
    beside._jobs.append(lambda: told.append(1))
    worker = threading.Thread(target=beside._work)
    beside._workers.add(worker)
    threading.Timer(0.05, worker.start).start()
    beside.drain(20.0)
    assert told == [1]
    assert not beside._workers


def test_what_hangs_is_waited_for_only_so_long() -> None:
    beside, hanging = Beside(1), threading.Event()
    beside.call(lambda _: hanging.wait(60), None)
    began = time.monotonic()
    beside.drain(0.05)
    assert time.monotonic() - began < 30
    hanging.set()
    beside.drain(20.0)
    assert not beside._workers
