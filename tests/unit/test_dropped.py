"""What is dropped without a word: leases, coordinators, and the end of the process."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
import holdfast.aio


def eventually(look: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_a_lease_that_nobody_has_is_not_renewed_and_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(warnings, "warn", lambda message, *_, **__: said.append(str(message)))
    with holdfast.connect("memory://lease") as locks:
        kept = locks.lock("kept", ttl=3).acquire()
        lost = locks.lock("dropped", ttl=1).acquire().lost
        gc.collect()
        eventually(lambda: said)
        assert "'dropped'" in said[0]
        assert lost.wait(20), "who waits for its end is told"
        eventually(lambda: [view.name for view in locks.survey()] == ["kept"])
        kept.check()


def test_a_lease_with_a_hook_is_kept_whoever_has_it() -> None:
    with holdfast.connect("memory://hook") as locks:
        locks.lock("door", ttl=6, on_lost=print).acquire()
        gc.collect()
        [hold] = locks._core.holds
        granted_until = hold.valid_until
        eventually(lambda: hold.valid_until > granted_until)  # it is renewed
        assert [view.name for view in locks.survey()] == ["door"]


def test_a_lease_of_asyncio_that_nobody_has_is_not_renewed() -> None:
    async def main() -> None:
        async with holdfast.aio.connect("memory://task") as locks:
            kept = await locks.lock("kept", ttl=3).acquire()
            await locks.lock("dropped", ttl=1).acquire()
            gc.collect()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                for _ in range(500):
                    if [view.name for view in await locks.survey()] == ["kept"]:
                        break
                    await asyncio.sleep(0.01)
                else:
                    raise AssertionError("it is renewed for ever")
            kept.check()

    asyncio.run(asyncio.wait_for(main(), 20))


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def test_coordinators_that_are_dropped_end_their_threads_and_connections(tmp_path: Path) -> None:
    def connect_and_drop(number: int) -> None:
        locks = holdfast.connect(f"sqlite://{tmp_path}/locks.db")
        if number % 2:
            with locks.lock(f"job/{number}"):
                pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        connect_and_drop(0)
        connect_and_drop(1)
        gc.collect()
        threads, descriptors = threading.active_count(), count_descriptors()
        for number in range(50):
            connect_and_drop(number)
        gc.collect()
        holdfast.connect(f"sqlite://{tmp_path}/locks.db").close()
    eventually(lambda: threading.active_count() <= threads + 2)
    eventually(lambda: count_descriptors() <= descriptors + 10)


def test_a_coordinator_that_is_dropped_is_warned_of() -> None:
    with pytest.warns(ResourceWarning, match="without close"):
        holdfast.connect("memory://dropped").__del__()


PROGRAM = """
import asyncio, sys, holdfast.aio
async def main():
    global locks, lease
    locks = await holdfast.aio.connect(sys.argv[1])
    lease = await locks.lock("door", ttl=60).acquire()
asyncio.run(main())
"""


def test_what_asyncio_has_not_closed_is_released_at_exit(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/locks.db"
    done = subprocess.run([sys.executable, "-c", PROGRAM, url], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    with holdfast.connect(url) as locks:
        assert locks.survey() == []
