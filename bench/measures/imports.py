"""Import time: a start of Python that imports, minus a bare start, taken in turns.

Both starts are isolated (`-I`: no environment, no user site) and differ in one statement only. The files are
compiled by a first start that is not counted.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.model import Absent, Contender, ImportResult
from bench.progress import say
from bench.stats import middle, percentile

START_TIMEOUT = 30.0


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
    added: dict[str, list[float]] = {each.name: [] for each in entered}
    for number in range(rounds):
        if number % 5 == 0:
            say(f"import: round {number + 1} of {rounds}, {len(entered)} statements")
        for each in entered:
            nothing = _start("pass")
            bare.append(nothing)
            added[each.name].append(_start(each.imports) - nothing)
    results = [
        ImportResult(
            contender=each.name,
            role=each.role,
            statement=each.imports,
            p50=middle(added[each.name]),
            p99=percentile(added[each.name], 0.99),
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
        done = subprocess.run(_command(statement), capture_output=True, text=True, timeout=START_TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"not imported within {START_TIMEOUT:.0f} s"
    return None if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1]}"


def _start(statement: str) -> float:
    """Seconds of one start. A wait with a timeout would poll, in steps of up to 50 ms: so a timer bounds it."""
    command = _command(statement)
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    watch = threading.Timer(START_TIMEOUT, child.kill)
    watch.start()
    status = child.wait()
    taken = time.perf_counter() - begin
    watch.cancel()
    if status:
        raise RuntimeError(f"{statement!r} ended with status {status}")
    return taken
