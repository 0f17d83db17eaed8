"""Trying each contender once before anything is measured, in a process of its own and with a time limit.

A peer that hangs, crashes the interpreter or cannot be imported becomes a reason in the report.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeAlias

from bench import registry
from bench.measures import pair
from bench.model import Contender, Target

TIMEOUT_S = 20.0
INSTALL = "pip install --editable '.[bench]'"


def trial(engine: str, name: str, target: Target) -> str | None:
    """Take and release one lock in every way of this contender. None when it works, else what went wrong."""
    return _in_child(_try, engine, name, target)


def tool_trial(engine: str, name: str, target: Target) -> str | None:
    """Do once what this peer does in the place of our tools."""
    return _in_child(_try_tool, engine, name, target)


Try: TypeAlias = Callable[[Connection, str, str, Target], None]


def _in_child(work: Try, engine: str, name: str, target: Target) -> str | None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=work, args=(theirs, engine, name, target), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(TIMEOUT_S):
            return f"did not finish one within {TIMEOUT_S:.0f} s"
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


def _try_tool(pipe: Connection, engine: str, name: str, target: Target) -> None:
    def work() -> None:
        for each in registry.tools(engine):
            if each.name == name:
                with each.open(target) as call:
                    call()

    pipe.send(told_error(work))


def attempt(contender: Contender, target: Target) -> str | None:
    """One pair in every way of this contender, here and now. None when it works, else what went wrong."""

    def work() -> None:
        with pair.turns(contender, target) as turn:
            turn(TIMEOUT_S, 1)
        if contender.lock_factory is not None:
            with contender.lock_factory(target, "trial") as new_worker_lock:
                worker_lock = new_worker_lock()
                worker_lock.take()
                worker_lock.release()

    return told_error(work)


def told_error(work: Callable[[], object]) -> str | None:
    """None when it works, else what went wrong, and what installs a peer that is missing."""
    try:
        work()
        return None
    except ImportError as error:
        return f"not installed: {error}; {INSTALL}"
    except Exception as error:  # noqa: BLE001 - whatever a peer does is what the report has to say
        return f"failed: {type(error).__name__}: {error}"
