"""What a zombie does: whose result stands when a worker that was stopped in the middle of its work wakes up.

1. A process begins the work of a key, and is stopped (SIGSTOP) before it writes its result, for longer than its time.
2. Another begins the same work as soon as it is let, and is given its result.
3. The first one is woken, and goes on: it writes its result too, or is refused.
4. Whoever asks now should be given what the second one was given.
No step depends on time but the second, which is tried until it succeeds.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection

from bench import registry
from bench.model import Target
from bench.progress import say
from bench.tool_model import ZombieContender
from bench.tool_outcomes import ZombieResult

HANG_S = 60.0
STOPS = "stops"


def measure(engine: str, contender: ZombieContender, target: Target) -> ZombieResult:
    say(f"zombie: {contender.name}")
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=_live, args=(theirs, engine, contender.tool, contender.name, target), daemon=True)
    child.start()
    theirs.close()
    try:
        assert (word := _receive(ours)) == STOPS, word
        assert child.pid is not None
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        successor = _insist(contender, target)
        os.kill(child.pid, signal.SIGCONT)
        told = _receive(ours)
        stands = contender.work(target, "third", lambda: None)
    finally:
        ours.close()
        child.kill()
        child.join()
    return ZombieResult(contender.tool, contender.name, contender.role, told, successor, stands)


def _receive(pipe: Connection) -> str:
    if not pipe.poll(HANG_S):
        raise RuntimeError(f"no word within {HANG_S:.0f} s")
    word: str = pipe.recv()
    return word


def _insist(contender: ZombieContender, target: Target) -> str:
    """The successor's attempt, until it succeeds."""
    end = time.monotonic() + HANG_S
    while True:
        try:
            return contender.work(target, "second", lambda: None)
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _live(pipe: Connection, engine: str, tool: str, name: str, target: Target) -> None:
    logging.disable()  # what a library says about it there is not what its caller is told
    contender = next(each for each in registry.zombies(engine) if (each.tool, each.name) == (tool, name))

    def stop() -> None:
        pipe.send(STOPS)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # `os.kill` may return before this thread stops

    try:
        pipe.send(f"done: {contender.work(target, 'first', stop)}")
    except Exception as error:  # noqa: BLE001 - what it was told is the result
        pipe.send(f"refused: {type(error).__name__}")
