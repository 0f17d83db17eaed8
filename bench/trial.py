"""Trying each contender once before anything is measured, in a process of its own and with a time limit.

A peer that hangs, crashes the interpreter or cannot be imported becomes a reason in the report.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

from bench import registry
from bench.measures import pair
from bench.model import Contender, Target

TIMEOUT_S = 20.0


def trial(engine: str, name: str, target: Target) -> str | None:
    """Take and release one lock in every way of this contender. None when it works, else what went wrong."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=_try, args=(theirs, engine, name, target), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(TIMEOUT_S):
            return f"did not finish one pair within {TIMEOUT_S:.0f} s"
        answer: str | None = ours.recv()
        return answer
    except EOFError:
        return "its process died"
    finally:
        ours.close()
        child.join(1.0)
        if child.is_alive():
            child.kill()
            child.join()


def _try(pipe: Connection, engine: str, name: str, target: Target) -> None:
    pipe.send(attempt(registry.contender(engine, name), target))


def attempt(contender: Contender, target: Target) -> str | None:
    """One pair in every way of this contender, here and now. None when it works, else what went wrong."""
    try:
        with pair.turns(contender, target) as turn:
            turn(TIMEOUT_S, 1)
        if contender.lock_factory is not None:
            with contender.lock_factory(target, "trial") as new_worker_lock:
                worker_lock = new_worker_lock()
                worker_lock.take()
                worker_lock.release()
        return None
    except ImportError as error:
        return f"not installed: {error}"
    except Exception as error:  # noqa: BLE001 - whatever a peer does is what the report has to say
        return f"failed: {type(error).__name__}: {error}"
