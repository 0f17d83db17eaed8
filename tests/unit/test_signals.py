"""A program that is told to end releases what it holds: with a plain script, it would stay locked for the ttl."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import Misconfigured

THREADS = """
import holdfast, sys, time
holdfast.release_on_signals()
locks = holdfast.connect(sys.argv[1])
with locks.lock("job", ttl=60):
    print("ready", flush=True)
    time.sleep(60)
"""
LOOSE = """
import holdfast, sys, time
holdfast.release_on_signals()
locks = holdfast.connect(sys.argv[1])
lease = locks.lock("job", ttl=60).acquire()
print("ready", flush=True)
time.sleep(60)
"""
TASKS = """
import asyncio, holdfast, holdfast.aio, sys
holdfast.release_on_signals()
async def main():
    async with holdfast.aio.connect(sys.argv[1]) as locks:
        async with locks.lock("job", ttl=60):
            print("ready", flush=True)
            await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("program", [THREADS, LOOSE, TASKS], ids=["threads", "acquired", "asyncio"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_told_to_end_leaves_no_lock(tmp_path: Path, program: str, number: signal.Signals) -> None:
    url = f"sqlite://{tmp_path}/locks.db"
    process = subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    with holdfast.connect(url) as locks:
        assert locks.survey() == []


def test_a_handler_of_the_user_is_not_replaced() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with pytest.raises(Misconfigured, match="SIGUSR1 has a handler already"):
            holdfast.release_on_signals(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        holdfast.release_on_signals(signal.SIGUSR1)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("number", [signal.SIGKILL, 9999, "TERM"])
def test_what_cannot_be_handled_is_refused(number: int) -> None:
    with pytest.raises(Misconfigured, match="not a signal"):
        holdfast.release_on_signals(number)


def test_only_the_main_thread_can() -> None:
    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            holdfast.release_on_signals()
        except Misconfigured as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])
