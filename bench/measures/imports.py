"""Import time: a start of Python that imports, minus a bare start, taken in turns.

Both starts are isolated (`-I`: no environment, no user site) and differ in one statement only. The files are
compiled by a first start that is not counted.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.model import Contender
from bench.outcomes import Absent, ImportResult
from bench.progress import say
from bench.stats import middle, percentile

START_TIMEOUT_S = 30.0


def measure(contenders: Sequence[Contender], rounds: int) -> tuple[list[ImportResult], list[Absent]]:
    absent: list[Absent] = []
    entered: list[Contender] = []
    for each in contenders:
        reason = _first_start(each.imports)
        if reason:
            absent.append(Absent(each.name, "import", reason))
        else:
            entered.append(each)
    bare: list[float] = []
    wall: dict[str, list[float]] = {each.name: [] for each in entered}
    cpu: dict[str, list[float]] = {each.name: [] for each in entered}
    for number in range(rounds):
        if number % 5 == 0:
            say(f"import: round {number + 1} of {rounds}, {len(entered)} statements")
        for each in entered:
            nothing, something = _start("pass"), _start(each.imports)
            bare.append(nothing.wall)
            wall[each.name].append(something.wall - nothing.wall)
            cpu[each.name].append(something.cpu - nothing.cpu)
    results = [
        ImportResult(
            contender=each.name,
            role=each.role,
            statement=each.imports,
            p50=middle(wall[each.name]),
            p99=percentile(wall[each.name], 0.99),
            cpu=middle(cpu[each.name]),
            bare=middle(bare),
            runs=rounds,
        )
        for each in entered
    ]
    return results, absent


def _command(statement: str) -> list[str]:
    """`-I` hides the source tree, so the folder of holdfast is named, in every start alike."""
    spec = importlib.util.find_spec("holdfast")
    places = [str(Path(place).parent) for place in (spec.submodule_search_locations or ())] if spec else []
    return [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {places!r}; {statement}"]


def _first_start(statement: str) -> str | None:
    try:
        done = subprocess.run(_command(statement), capture_output=True, text=True, timeout=START_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"not imported within {START_TIMEOUT_S:.0f} s"
    return None if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1]}"


class Start(NamedTuple):
    """What one start of Python took, in seconds."""

    wall: float
    cpu: float


def _start(statement: str) -> Start:
    """A wait with a timeout would poll, in steps of up to 50 ms: so a timer bounds it instead."""
    command = _command(statement)
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    watch = threading.Timer(START_TIMEOUT_S, child.kill)
    watch.start()
    _, status, usage = os.wait4(child.pid, 0)
    taken = time.perf_counter() - begin
    watch.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{statement!r} ended with status {child.returncode}")
    return Start(taken, usage.ru_utime + usage.ru_stime)
