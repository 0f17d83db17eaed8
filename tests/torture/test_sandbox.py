"""The sandbox leaves nothing behind, and does to servers what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.torture.engines import EngineOptions, start
from holdfast.torture.engines.redis import command
from holdfast.torture.sandbox import Sandbox
from holdfast.torture.sandbox.loopback import eventually, free_port
from holdfast.torture.sandbox.reaper import started_at
from holdfast.torture.sandbox.server import process_tree

RUN = """
import signal, time
from holdfast.torture.sandbox import Sandbox
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has it ignored
with Sandbox("hf-sandbox-") as sandbox:
    process = sandbox.spawn(["sleep", "600"])
    print(process.pid, sandbox.folder, flush=True)
    time.sleep(600)
"""


PORTS = """
import sys
from holdfast.torture.sandbox import loopback
loopback._first = lambda: int(sys.argv[1])
print(*(loopback.free_port() for _ in range(20)), flush=True)
sys.stdin.read()
"""


def test_a_port_is_given_to_one_process_only() -> None:
    """Also if nobody listens there yet: servers take their time to start."""
    words = [sys.executable, "-W", "error", "-c", PORTS, str(free_port())]
    with (
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
    ):
        assert one.stdout is not None
        assert other.stdout is not None
        first, second = set(one.stdout.readline().split()), set(other.stdout.readline().split())
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.close()
    assert len(first) == len(second) == 20
    assert not first & second
    assert (one.returncode, other.returncode) == (0, 0)


def a_run() -> tuple[subprocess.Popen[str], int, Path]:
    run = subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    pid, folder = run.stdout.readline().split()
    return run, int(pid), Path(folder)


def gone(pid: int, folder: Path) -> Callable[[], bool]:
    return lambda: started_at(pid) is None and not folder.exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_whatever_ends_a_run_its_processes_and_folders_go(how: signal.Signals) -> None:
    run, pid, folder = a_run()
    assert started_at(pid) is not None
    assert folder.exists()
    run.send_signal(how)
    run.wait(20)
    assert run.stdout is not None
    run.stdout.close()
    assert eventually(gone(pid, folder), 20.0)


def test_a_process_that_took_over_the_pid_of_ours_is_left_alone() -> None:
    from holdfast.torture.sandbox.reaper import end_process

    innocent = subprocess.Popen(["sleep", "600"])
    try:
        started = started_at(innocent.pid)
        assert started is not None
        end_process(innocent.pid, started - 1)
        with pytest.raises(subprocess.TimeoutExpired):
            innocent.wait(0.3)  # a kill takes its moment
    finally:
        innocent.kill()
        innocent.wait()


def test_two_callers_get_two_ports() -> None:
    assert len({free_port() for _ in range(50)}) == 50


def test_a_server_is_paused_killed_and_emptied() -> None:
    with Sandbox("hf-sandbox-") as sandbox:
        engine = start("redis", sandbox, EngineOptions())
        node = engine.nodes[0]

        def said(*words: str) -> bytes:
            return command(node.host, node.port, *words)

        said("SET", "a", "1")
        node.kill()
        assert not node.answers()
        node.start()
        assert said("GET", "a") == b"$1\r\n1\r\n", "it remembers what it had on disk"
        node.kill()
        node.wipe()
        node.start()
        assert said("GET", "a") == b"$-1\r\n", "it has forgotten"
        node.pause()
        with pytest.raises(TimeoutError):
            said("PING")
        node.resume()
        assert node.answers()


def test_the_clock_of_a_server_jumps_and_returns() -> None:
    with Sandbox("hf-sandbox-") as sandbox:
        engine = start("redis", sandbox, EngineOptions(clocks=True))
        node = engine.nodes[0]
        assert node.clock is not None

        def ahead() -> float:
            return int(command(node.host, node.port, "TIME").split(b"\r\n")[2]) - time.time()

        for offset in (0.0, 3600.0, -3600.0, 0.0):
            node.clock.move(offset)
            assert abs(ahead() - offset) < 60


def test_a_process_tree_has_the_children_that_left_their_group() -> None:
    words = [sys.executable, "-c", "import subprocess\nsubprocess.run(['setsid', 'sleep', '600'])"]
    parent = subprocess.Popen(words)
    try:
        assert eventually(lambda: len(process_tree(parent.pid)) >= 2, 20.0)
    finally:
        for pid, _ in process_tree(parent.pid):
            os.kill(pid, signal.SIGKILL)
        parent.wait()
